// A model's config.json, or the metadata of a GGUF file, as flat facts. Hostile: bounded, and never an error.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "weft/manifest.h"

namespace weft {

// Keys of inner objects are joined by dots; entries of arrays have none, but for texts, which are joined by commas
// under the array's own key ("architectures"). Numbers are in one form: whole ones as digits, others with 6 significant
// digits, so that 1e-5 and its nearest 32-bit float are one. The last of equal keys counts.
using ArchConfig = std::map<std::string, std::string, std::less<>>;

ArchConfig read_config(std::string_view json);  // empty when it is no JSON object
ArchConfig config_of_metadata(const File& gguf);

// The first of the keys, separated by '|', that is there.
std::optional<std::string> config_value(const ArchConfig& config, std::string_view keys);

}  // namespace weft
