// The names of models, tags and versions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/result.h"

namespace weft {

// The grammar of names, and why a name is refused (one line). Model: components of [A-Za-z0-9._+-], each starting with
// a letter or digit, at most 96 bytes, joined by '/', at most 200 bytes in all; no component may be "latest" or all
// digits. Tag: one such component. MODEL[@V]: V a number, a tag or "latest".
Status check_model_name(std::string_view name);
Status check_tag_name(std::string_view tag);

// The rules for names in keys and records that come from other nodes and files. The grammar above is stricter.
Status check_key_component(std::string_view text, std::string_view what);  // `what`: "model's name", "tag"
Status check_key_name(std::string_view name);

struct VersionSpec {
  std::string model;
  std::string version;  // "" (latest), digits, or a tag
};
Result<VersionSpec> parse_version_spec(std::string_view text);

std::string spec_of(std::string_view model, std::uint64_t number);  // "org/bert@2"

}  // namespace weft
