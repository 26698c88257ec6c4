// The store that a machine's weft.conf names.
#pragma once

#include <optional>
#include <string>

namespace weft {

// Returns the value of the key `store`, or nothing if there is no such file, or none that this user may read, or it
// names no store. weftd reads the file as toml; the command line only needs this one key, and is built where no toml
// library is.
std::optional<std::string> configured_store(const std::string& config_file);

}  // namespace weft
