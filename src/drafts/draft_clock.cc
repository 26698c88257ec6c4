#include "drafts/draft_clock.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "drafts/publish_folder.h"
#include "os/entries.h"
#include "os/file_ops.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr char kClock[] = "clock";
constexpr std::size_t kMarkBytesMax = 64U << 10U;
constexpr std::size_t kJumpsMax = 500;          // then the two oldest become one
constexpr std::uint64_t kSlackS = 600;          // between clock and uptime: NTP sets a clock that goes wrong
constexpr std::uint64_t kOffMaxS = 24 * 3600U;  // longest time without power that is believed

ClockMark present() {
  return {now_ns() / 1'000'000'000, uptime_s(), boot_id()};
}

// Returns the mark of the last reading, if there was one. A mark that cannot be read explains no time at all.
std::optional<ClockMark> read_mark(int folder) {
  const auto file = open_at(folder, kClock, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file.ok() && file.error().code == Errc::not_found) return {};
  const auto json = JsonValue::parse(read_line(file, kMarkBytesMax));
  auto mark = json.ok() ? decode_fields<ClockMark>(*json) : Result<ClockMark>(json.error());
  return mark.ok() ? *std::move(mark) : ClockMark{};
}

}  // namespace

void fields(JsonFields& f, ClockJump& m) {
  f("at_s", m.at_s)("skipped_s", m.skipped_s);
}

void fields(JsonFields& f, ClockMark& m) {
  f("wall_s", m.wall_s)("uptime_s", m.uptime_s)("boot", m.boot)("jumps", m.jumps);
}

ClockMark after(const ClockMark& before, ClockMark now) {
  const bool same_boot = before.boot == now.boot && before.uptime_s <= now.uptime_s;
  const std::uint64_t explained = same_boot ? now.uptime_s - before.uptime_s + kSlackS : kOffMaxS;
  const std::uint64_t went = now.wall_s - std::min(before.wall_s, now.wall_s);
  now.jumps = before.jumps;
  for (ClockJump& jump : now.jumps) jump.at_s = std::min(jump.at_s, now.wall_s);  // the clock was set back
  if (went > explained) now.jumps.push_back({now.wall_s, went - explained});
  if (now.jumps.size() <= kJumpsMax) return now;
  ClockJump& second = now.jumps[1];
  second.skipped_s = std::min(second.at_s, now.jumps[0].skipped_s) + std::min(second.at_s, second.skipped_s);
  now.jumps.erase(now.jumps.begin());
  return now;
}

// At most the time of the jump: the clock may have gone too far before the draft was written.
std::uint64_t believed_written(const ClockMark& mark, std::uint64_t written_s) {
  for (const ClockJump& jump : mark.jumps)
    if (written_s < jump.at_s) written_s += std::min(jump.skipped_s, jump.at_s - written_s);
  return written_s;
}

ClockMark read_clock(int folder) {
  const std::optional<ClockMark> before = read_mark(folder);
  return before ? after(*before, present()) : present();
}

ClockMark mark_clock(int folder) {
  ClockMark mark = read_clock(folder);
  if (!mark.jumps.empty() && mark.jumps.back().at_s == mark.wall_s)
    log_warning(
        "the clock went {} s further than the machine ran since the last reading: drafts in new/ are that much younger",
        mark.jumps.back().skipped_s);
  const auto written = leave_note(folder, kClock, 0600, encode_fields(mark) + "\n");
  if (!written.ok()) log_warning("drafts/clock: {}", written.error().message);
  return mark;
}

}  // namespace weft
