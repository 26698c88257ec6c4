// Opens a path below a directory in which other users may rename and link files meanwhile. The kernel resolves the path
// and does not let it lead outside of the directory (openat2 with RESOLVE_BENEATH, Linux 5.6). Beneath (beneath.h) and
// the drafts of a mount are built on it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "os/sys.h"
#include "weft/result.h"

namespace weft {

enum class Resolve : std::uint8_t {
  no_links,            // no component is a symbolic link; O_PATH | O_NOFOLLOW opens a link as the last component
  no_links_no_mounts,  // as no_links, and the path crosses no mount point
  links_within,        // follows links that stay below the directory
  in_cache,            // follows any path, as far as the kernel's cache has it (Linux 5.12); Errc::busy: not all of it
};

// Errc::busy: other processes renamed something during every attempt, or the file has a lease. `mode` is the mode of a
// file that O_CREAT creates.
Result<Fd> open_beneath(int directory, const std::string& path, int flags, mode_t mode, Resolve resolve);

}  // namespace weft
