// Writes lists of lines to the JSON output of commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weft {

inline void write_lines(JsonWriter& json, std::string_view key, const std::vector<std::string>& lines) {
  json.key(key).begin_array();
  for (const std::string& line : lines) json.value(line);
  json.end_array();
}

}  // namespace weft
