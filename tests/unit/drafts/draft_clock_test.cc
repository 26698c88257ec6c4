// gc does not believe a clock that jumps.
#include "drafts/draft_clock.h"

#include <chrono>
#include <string>
#include <thread>

#include "drafts/old_drafts.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "unit/drafts/drafts.h"

namespace weft {
namespace {

using namespace testing;

constexpr std::uint64_t kDay = 24 * 3600;
constexpr std::uint64_t kNow = 20'000 * kDay;

TEST_CASE("a clock that goes as the machine runs is believed") {
  const ClockMark before{kNow, 5000, "boot", 0};
  CHECK(after(before, {kNow + 30 * kDay, 5000 + 30 * kDay, "boot", 0}).believed_s == 0);
  CHECK(after(before, {kNow + 500, 5000, "boot", 0}).believed_s == 0);  // set a little by NTP
  CHECK(after(before, {kNow - 8 * kDay, 5000, "boot", 0}).believed_s == 0);
  CHECK(after(before, {kNow + kDay / 2, 60, "next", 0}).believed_s == 0);  // a night without power
}

TEST_CASE("after a jump of the clock every age begins anew") {
  const ClockMark before{kNow, 5000, "boot", 0};
  const std::uint64_t ahead = kNow + 8 * kDay;
  const ClockMark jumped = after(before, {ahead, 5001, "boot", 0});
  CHECK(jumped.believed_s == ahead);
  CHECK(after(before, {ahead, 60, "next", 0}).believed_s == ahead);    // a dead battery
  CHECK(after(before, {ahead, 4000, "boot", 0}).believed_s == ahead);  // a container with an uptime of its own
  const ClockMark later = after(jumped, {ahead + kDay, 5001 + kDay, "boot", 0});
  CHECK(later.believed_s == ahead);
  CHECK(after(later, {kNow + kDay, 5001 + kDay, "boot", 0}).believed_s == kNow + kDay);  // the clock is right again
}

TEST_CASE("gc with a clock days ahead removes no draft") {
  NewDraft draft;
  draft.file.fd.reset();
  const std::string clock = draft.dir.path() + "/drafts/clock";
  REQUIRE(stat_file(clock).ok());  // the mount has looked
  const std::uint64_t now = now_ns() / 1'000'000'000;
  std::this_thread::sleep_for(std::chrono::milliseconds(3100));
  const auto old = [&draft] { return must(old_drafts(draft.dir.path(), std::chrono::seconds(2))).size(); };
  CHECK(old() == 1);
  SUBCASE("the clock has jumped since the last look") {
    write_file(clock, encode_fields(ClockMark{now - 8 * kDay, uptime_s(), boot_id(), 0}));
  }
  SUBCASE("the last look is not known") {
    write_file(clock, "no mark");
  }
  CHECK(old() == 0);
  CHECK(must(remove_old_drafts(draft.dir.path(), std::chrono::seconds(2))).empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(3100));
  CHECK(must(remove_old_drafts(draft.dir.path(), std::chrono::seconds(2))).size() == 1);  // that time has passed again
}

}  // namespace
}  // namespace weft
