// mount(2) and what surrounds it.
#pragma once

#include <string>

#include "fuse/process/options.h"
#include "os/sys.h"

namespace weft {

struct Mountpoint {
  std::string path;     // real
  std::string cleared;  // what had to be cleared away first, for the user; usually empty
};
// Checks that `directory` can be mounted on. An error says why it cannot, and what to do: it does not exist, is no
// directory, has a live weft mount already, or holds files and `non_empty` is not set. A weft mount whose server or
// supervisor is gone is taken away.
Result<Mountpoint> usable_mountpoint(const std::string& directory, bool non_empty);

Result<Fd> open_fuse_device();
// As root: mounts `device` at options.directory, both absolute; shown as `options.store on options.directory type
// fuse.weft`.
Status mount_device(int device, const MountOptions& options);
// Options for fuse_open_channel, which mounts by fusermount3.
std::string fusermount_options(const MountOptions& options);
// Takes a mount of ours away, also while it is used; who has files open gets ENOTCONN or ECONNABORTED.
void force_unmount(const std::string& directory);
void unmount_by_fusermount(const std::string& directory);

bool on_overlayfs(const std::string& path);

}  // namespace weft
