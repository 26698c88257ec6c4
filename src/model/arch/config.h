// A model's config.json, or the metadata of a GGUF file, as flat facts. The input is hostile: it is bounded, and never
// an error.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "weft/model/manifest.h"

namespace weft {

// Keys of inner objects are joined by dots. Entries of arrays are left out, except texts, which are joined by commas
// under the array's key ("architectures"). Numbers have one form: whole ones as digits, others with 6 significant
// digits, so that 1e-5 and its nearest 32-bit float are equal. The last of equal keys counts.
using ArchConfig = std::map<std::string, std::string, std::less<>>;

ArchConfig read_config(std::string_view json);  // empty if it is no JSON object
ArchConfig config_of_metadata(const File& gguf);

// Returns the value of the first existing key; keys are separated by '|'.
std::optional<std::string> config_value(const ArchConfig& config, std::string_view keys);

}  // namespace weft
