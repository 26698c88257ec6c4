// mount(2), and the checks and options around it.
#pragma once

#include <string>

#include "fuse/process/options.h"
#include "os/sys.h"

namespace weft {

struct Mountpoint {
  std::string path;     // real path
  std::string cleared;  // message about an abandoned mount that was cleared first; usually empty
};
// Checks that `directory` can be mounted on, after clearing a weft mount whose server or supervisor is gone. The error
// says what is wrong and what to do: the directory does not exist, is no directory, has a live weft mount, or holds
// files and `non_empty` is not set.
Result<Mountpoint> usable_mountpoint(const std::string& directory, bool non_empty);

// Takes over the descriptor that a mount point "/dev/fd/N" names: child processes do not inherit it. Call it before the
// process opens files, which would get the number of a closed descriptor. Errc::invalid: the name has no number, or N
// is no open descriptor of /dev/fuse for reading and writing.
Result<Fd> take_descriptor(const std::string& mount_point);

Result<Fd> open_fuse_device();
// As root: mounts `device` at options.directory. Store and directory are absolute paths. The mount is shown as
// `options.store on options.directory type fuse.weft`.
Status mount_device(int device, const MountOptions& options);
// Returns the options for fuse_open_channel(), which mounts by fusermount3.
std::string fusermount_options(const MountOptions& options);
// Unmounts a mount of ours, even while it is in use; processes with open files get ENOTCONN or ECONNABORTED.
void force_unmount(const std::string& directory);
void unmount_by_fusermount(const std::string& directory);

}  // namespace weft
