// How a path is opened below a directory in which other users may rename and link things meanwhile: the kernel resolves
// it, and it leads to nothing outside the directory (openat2 with RESOLVE_BENEATH, Linux 5.6). Beneath (beneath.h) and
// the drafts of a mount are made of it.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace weft {

enum class Resolve : std::uint8_t {
  no_links,            // no component is a symbolic link; the last one may be with O_PATH | O_NOFOLLOW, which opens it
  no_links_no_mounts,  // and all lies on the directory's file system
  links_within,        // links are followed as long as they stay below the directory
};

// A descriptor (O_CLOEXEC is set), or an errno with a minus sign. -EAGAIN: something was renamed again and again
// meanwhile, or the file has a lease. `mode` is that of a file that O_CREAT makes.
int open_beneath(int directory, const char* path, int flags, mode_t mode, Resolve resolve);

}  // namespace weft
