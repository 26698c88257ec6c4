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
// A directory that can be mounted on; an error says why it cannot (not there, no directory, a live weft mount already).
// A weft mount whose server or supervisor is gone is taken away.
Result<Mountpoint> usable_mountpoint(const std::string& directory);

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
