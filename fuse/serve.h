// Serves a tree at a mount point.
#pragma once

#include <functional>

#include "options.h"
#include "weft/vfs.h"

namespace weft {

// Serves `vfs` at options.directory (options.store and options.directory are real paths) until somebody unmounts it, or
// SIGTERM, SIGINT or SIGHUP comes: then it unmounts. `ready` is called once, from another thread, when the mount
// answers. How it is mounted goes to Vfs::set_mount_status. block_stop_signals() was called before any thread was made.
Status serve(Vfs& vfs, const MountOptions& options, const std::function<void()>& ready);

void block_stop_signals();

}  // namespace weft
