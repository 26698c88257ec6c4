// What a machine's weft.conf says.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weft {

// Returns the value of a key that is in no table, as `store` and `origin`; or nothing if there is no such file, or none
// that this user may read, or it has no such key. weftd reads the file as toml; the command line only needs these keys,
// and is built where no toml library is.
std::optional<std::string> configured_value(const std::string& config_file, std::string_view key);

}  // namespace weft
