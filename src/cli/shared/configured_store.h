// What a machine's weft.conf says.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "weft/result.h"

namespace weft {

// Returns the value of a key that is in no table, as `store` and `origin`; or nothing if there is no such file, or none
// that this user may read, or it has no such key. weftd reads the file as toml; the command line only needs these keys,
// and is built where no toml library is.
std::optional<std::string> configured_value(const std::string& config_file, std::string_view key);
// The same, and nothing if the file is for another store than that of this directory.
std::optional<std::string> configured_for(const std::string& config_file, const std::string& store_path,
                                          std::string_view key);
// How long drafts stay that nobody writes to: `drafts_keep`, or its default. Errc::invalid: it is no time.
Result<std::chrono::seconds> configured_drafts_keep(const std::string& config_file, const std::string& store_path);

}  // namespace weft
