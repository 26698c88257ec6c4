// The clock by which gc judges the age of drafts. A wrong clock must not remove them: STORE/drafts/clock keeps what the
// clock of the machine and its uptime said at the last look. A clock that has gone further than the uptime explains
// begins every age anew.
#pragma once

#include <cstdint>
#include <string>

#include "base/json_fields.h"

namespace weft {

struct ClockMark {
  std::uint64_t wall_s = 0;      // seconds since 1970
  std::uint64_t uptime_s = 0;    // seconds since the boot
  std::string boot;              // id of that boot
  std::uint64_t believed_s = 0;  // no draft is older than this: the clock before it is not believed
};
void fields(JsonFields& f, ClockMark& m);

// Returns the mark of a look after `before`. `now` has all but believed_s.
ClockMark after(const ClockMark& before, ClockMark now);

// Looks at the clock and returns ClockMark::believed_s. `folder` is STORE/drafts.
std::uint64_t believed_since(int folder);
// The same, and keeps the mark for the next look. Best effort.
std::uint64_t mark_clock(int folder);

}  // namespace weft
