// One server: serves a tree on the device that its supervisor gives it.
#pragma once

#include "fuse/process/options.h"
#include "fuse/process/server_process.h"
#include "weft/cold.h"
#include "weft/publish.h"
#include "weft/vfs.h"

namespace weft {

// Serves `vfs` until the mount is gone. options.store and options.directory are real paths; `ends` are this process's,
// and are closed. How it is mounted goes to Vfs::set_mount_status. block_stop_signals() was called before any thread
// was made: a stop signal is the supervisor's affair, and only when that is gone the server itself unmounts.
// Errc::unsupported when the state that `ends` lead to is another program's.
// `cold` fetches bytes of other nodes, and may be null. The supervisor does not take a request that waits for such
// bytes for a stalled one.
Status serve(Vfs& vfs, PublishRights& rights, ColdReads* cold, const MountOptions& options, const ServerEnds& ends);

}  // namespace weft
