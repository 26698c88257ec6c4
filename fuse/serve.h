// A server: serves a tree on the device that its supervisor passes on.
#pragma once

#include "fuse/process/options.h"
#include "fuse/process/server_process.h"
#include "weft/bytes/cold.h"
#include "weft/programs/mount_figures.h"
#include "weft/programs/vfs.h"
#include "weft/store/publish.h"

namespace weft {

// Serves `vfs` until the mount is gone. options.store is a real path; `ends` are this process's, and are closed. Passes
// the mount's status to Vfs::set_mount_status. Call block_signals() before any thread starts: a stop signal is passed
// to the supervisor, and the server unmounts only if the supervisor is gone. Errc::unsupported if the state behind
// `ends` has another program's layout. `cold` fetches bytes of other nodes, and may be null. The supervisor does not
// take a request that waits for such bytes for a stalled one. `reports` gets the figures of the mount every few
// seconds.
Status serve(Vfs& vfs, PublishRights& rights, MountReports& reports, ColdReads* cold, const MountOptions& options,
             const ServerEnds& ends);

}  // namespace weft
