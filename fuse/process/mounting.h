// Mounting and unmounting: by mount(2) as root, which passthrough needs, else by fusermount3. Or another process does
// both, and passes its descriptor of /dev/fuse.
#pragma once

#include "fuse/process/options.h"
#include "fuse/process/shared_state.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft {

// Mounts at options.directory and returns the device. Stores FUSE_INIT and the way of mounting in `head`.
Result<Fd> mount_new(const MountOptions& options, SharedHead& head);

// Begins to serve a mount of another process, whose descriptor take_descriptor() returned, and fills `head` as
// mount_new() does. Errc::invalid: nothing is mounted with the descriptor, or its mount is gone or has a server
// already, which serves on.
Result<Fd> adopt_mount(Fd device, const MountOptions& options, SharedHead& head);

// Unmounts, even while the mount is in use; processes with open files get ENOTCONN or ECONNABORTED. Changes nothing
// unless the directory shows this mount, nor if another process mounted.
void unmount(const MountOptions& options, const SharedHead& head);

// Sets the readahead of the mount's super block, found by the device number in `head`. The path is no
// use: after `umount -l` another file system is there.
Status set_read_ahead(int device, const SharedHead& head, unsigned kilobytes);

// True if the kernel has ended the connection: the mount is gone or was aborted.
bool disconnected(int device);
// True if requests wait to be read.
bool requests_wait(int device);

}  // namespace weft
