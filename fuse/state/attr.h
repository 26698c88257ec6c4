// Attributes and directory entries in FUSE's form, and how long the kernel may cache them.
#pragma once

#include <sys/stat.h>

#include "fuse/state/server.h"

namespace weft {

struct stat to_stat(const Attr& attr, const MountOptions& options);
double attr_timeout_s(const Attr& attr, const MountOptions& options);
fuse_entry_param to_entry(const Attr& attr, const MountOptions& options);
// A negative entry, which the kernel caches.
fuse_entry_param absent_entry();
mode_t mode_of(const Attr& attr, const MountOptions& options);

}  // namespace weft
