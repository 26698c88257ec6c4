// Facts about other processes.
#pragma once

#include <sys/types.h>

namespace weft {

// True if a SIGKILL is pending for the thread, as after a signal whose default action ends the process. False also if
// /proc cannot be read.
bool is_being_killed(pid_t thread);

}  // namespace weft
