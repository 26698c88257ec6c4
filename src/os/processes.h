// Facts about other processes.
#pragma once

#include <sys/types.h>

namespace weft {

// Whether a thread has a SIGKILL to act on, as after a signal whose default ends the process. False also if /proc does
// not tell.
bool is_being_killed(pid_t thread);

}  // namespace weft
