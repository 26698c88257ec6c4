// On which file systems a store may lie: an index is a shared memory map, and locks must be seen by all who use it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "os/safe_path.h"
#include "weft/result.h"

namespace weft {

// The name of a network or user-space file system with this statfs f_type; nothing for any other.
std::optional<std::string_view> unsuitable_file_system(unsigned long f_type);

// Errc::unsupported, by name, when `directory`, that of a Beneath, lies on one.
Status check_file_system(const SafePath& directory);

}  // namespace weft
