// Runs work in a background process whose parent waits for the outcome.
#pragma once

#include <functional>

#include "weft/result.h"

namespace weft {

// Runs `work` in a child process with "/" as its working directory. When the child calls `ready`, it leaves the
// caller's session and terminal. Until then it stays in the caller's process group: automount and systemd mount from
// their own group, and the kernel makes a process of any other group that walks to an autofs mount point wait until
// the mount is there. So mount(2) has to come before `ready`.
// Returns only in the parent: success once the child has called `ready`, else the child's error.
// The calling process has one thread.
Status run_in_background(const std::function<Status(const std::function<void()>& ready)>& work);

}  // namespace weft
