// Waiting for a lock that somebody else holds.
#pragma once

#include <string>
#include <string_view>

#include "base/sys.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// flock(2), as long as it takes. Errc::cancelled, with the holder where it is known, when `patience` ends.
Status wait_for_lock(int fd, LockKind kind, const Patience& patience, std::string_view where);

// "process 1234 (weft)" that holds a flock of this file; "" when /proc/locks does not tell, as from another container.
std::string lock_holder(int fd);

}  // namespace weft
