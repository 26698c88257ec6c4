// The clock by which gc judges the age of drafts. A wrong clock must not remove them: STORE/drafts/clock keeps what the
// clock of the machine and its uptime said at the last reading. If the clock has gone further than the uptime explains,
// the difference does not count in the age of a draft from before. Of a time without power, up to a day counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fields.h"

namespace weft {

struct ClockJump {
  std::uint64_t at_s = 0;       // what the clock said afterwards
  std::uint64_t skipped_s = 0;  // by which it went too far
};
void fields(JsonFields& f, ClockJump& m);

struct ClockMark {
  std::uint64_t wall_s = 0;        // seconds since 1970
  std::uint64_t uptime_s = 0;      // seconds since the boot
  std::string boot{};              // id of that boot
  std::vector<ClockJump> jumps{};  // up to now, oldest first
};
void fields(JsonFields& f, ClockMark& m);

// Returns the mark of a reading after `before`. `now` has all but the jumps.
ClockMark after(const ClockMark& before, ClockMark now);
// Returns the time by which to judge the age of a draft that was written when the clock said `written_s`: later by the
// jumps since then.
std::uint64_t believed_written(const ClockMark& mark, std::uint64_t written_s);

// Reads the clock. `folder` is STORE/drafts.
ClockMark read_clock(int folder);
// The same, and keeps the mark for the next reading. Best effort.
ClockMark mark_clock(int folder);

}  // namespace weft
