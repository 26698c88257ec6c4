// Reads settings from the machine's weft.conf, for the command line.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "weft/result.h"

namespace weft {

// Returns the value of a top-level key such as `store` or `origin`. Nothing if the file does not exist, has no such
// key, or is not readable for this user. weftd parses the file as TOML; the command line needs only these keys, and
// builds without a TOML library.
std::optional<std::string> configured_value(const std::string& config_file, std::string_view key);
// Returns configured_value(), or nothing if the file configures a store in another directory.
std::optional<std::string> configured_for(const std::string& config_file, const std::string& store_path,
                                          std::string_view key);
// Returns `drafts_keep`, the time after which gc removes unwritten drafts, or its default. Errc::invalid: not a time.
Result<std::chrono::seconds> configured_drafts_keep(const std::string& config_file, const std::string& store_path);

}  // namespace weft
