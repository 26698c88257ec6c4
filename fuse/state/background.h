// Going to the background, with a parent that waits for the outcome.
#pragma once

#include <functional>

#include "weft/result.h"

namespace weft {

// Runs `work` in a child process that is a daemon (own session, "/" as its directory, no terminal once it is ready).
// Returns in the parent alone: success when the child called `ready`, else the child's error.
// To be called while the process has one thread.
Status run_in_background(const std::function<Status(const std::function<void()>& ready)>& work);

}  // namespace weft
