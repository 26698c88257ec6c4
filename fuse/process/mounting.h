// How a mount comes up and goes away: by mount(2) as root, which passthrough needs, else by fusermount3.
#pragma once

#include "fuse/process/options.h"
#include "fuse/process/shared_state.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft {

// Mounts at options.directory and returns the device. How it was done, and FUSE_INIT, go to `head`.
Result<Fd> mount_new(const MountOptions& options, SharedHead& head);

// Takes the mount away, also while it is used; who has files open gets ENOTCONN or ECONNABORTED. Nothing happens when
// what shows at the directory is no longer this mount.
void unmount(const MountOptions& options, const SharedHead& head);

// Sets the readahead of the mount's own super block, by the number that mount_new() found. What shows at the directory
// does not count: after `umount -l` that is another file system.
Status set_read_ahead(int device, const SharedHead& head, unsigned kilobytes);

// Has the kernel ended the connection (the mount is gone, or was aborted)?
bool disconnected(int device);
// Do requests wait to be read?
bool requests_wait(int device);

}  // namespace weft
