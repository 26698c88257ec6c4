// gc does not believe a clock that jumps.
#include "drafts/draft_clock.h"

#include <unistd.h>

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
  const ClockMark before{kNow, 5000, "boot"};
  CHECK(after(before, {kNow + 30 * kDay, 5000 + 30 * kDay, "boot"}).jumps.empty());
  CHECK(after(before, {kNow + 500, 5000, "boot"}).jumps.empty());  // set a little by NTP
  CHECK(after(before, {kNow - 8 * kDay, 5000, "boot"}).jumps.empty());
  CHECK(after(before, {kNow + kDay / 2, 60, "next"}).jumps.empty());  // a night without power
}

TEST_CASE("a jump of the clock makes no draft old") {
  const ClockMark before{kNow, 5000, "boot"};
  const std::uint64_t ahead = kNow + 8 * kDay;
  const ClockMark jumped = after(before, {ahead, 5001, "boot"});
  const auto age = [](const ClockMark& mark, std::uint64_t written) {
    return mark.wall_s - believed_written(mark, written);
  };
  CHECK(age(jumped, kNow) <= 601);
  CHECK(age(jumped, kNow - 2 * kDay) <= 2 * kDay + 601);
  CHECK(age(jumped, kNow + kDay) == 0);                                       // by the wrong clock
  CHECK(age(after(before, {ahead, 60, "next"}), kNow) == kDay);               // a dead battery
  CHECK(age(after(before, {ahead, 4000, "boot"}), kNow - kDay) == 2 * kDay);  // a container with an uptime of its own
  CHECK(age(after({}, {ahead, 5001, "boot"}), kNow - 3 * kDay) == 0);         // the last look is not known
  const ClockMark later = after(jumped, {ahead + kDay, 5001 + kDay, "boot"});
  CHECK(age(later, ahead) == kDay);
  CHECK(age(later, kNow) <= kDay + 601);
  const ClockMark right = after(later, {kNow + kDay, 5001 + kDay, "boot"});  // the clock is right again
  CHECK(age(right, kNow) == 0);
  CHECK(age(after(right, {kNow + 2 * kDay, 5001 + 2 * kDay, "boot"}), kNow) == kDay);
}

TEST_CASE("a machine that is off from Friday to Monday has old drafts") {
  constexpr std::uint64_t kOff = 62 * 3600, kWeek = 7 * kDay;
  ClockMark mark{kNow, 0, "boot 0"};  // a Monday
  std::uint64_t age = 0;
  for (std::uint64_t week = 1; week <= 2; ++week) {
    const std::string boot = "boot " + std::to_string(week);
    mark = after(mark, {mark.wall_s + kWeek - kOff, kWeek - kOff, "boot " + std::to_string(week - 1)});
    mark = after(mark, {mark.wall_s + kOff, 60, boot});
    mark.uptime_s = 0;
    age = mark.wall_s - believed_written(mark, kNow);
  }
  CHECK(mark.jumps.size() == 2);
  CHECK(age == 2 * (kWeek - kOff + kDay));
  CHECK(age > kWeek);
}

TEST_CASE("the oldest jumps of a clock become one") {
  ClockMark mark{kNow, 0, "boot 0"};
  for (int boot = 1; boot <= 1000; ++boot)
    mark = after(mark, {mark.wall_s + 3 * kDay, 0, "boot " + std::to_string(boot)});
  CHECK(mark.jumps.size() == 500);
  CHECK(mark.wall_s - believed_written(mark, kNow) == 1000 * kDay);
  CHECK(encode_fields(mark).size() < 64U << 10U);
}

TEST_CASE("the mark of a clock belongs to the folder's owner") {
  constexpr uid_t kOwner = 64001;
  const NewDraft draft;
  if (::fchown(draft.tree->folder(), kOwner, kOwner) != 0) return;  // needs root
  mark_clock(draft.tree->folder());
  CHECK(must(stat_file(draft.dir.path() + "/drafts/clock")).st_uid == kOwner);
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
    write_file(clock, encode_fields(ClockMark{now - 8 * kDay, uptime_s(), boot_id()}));
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
