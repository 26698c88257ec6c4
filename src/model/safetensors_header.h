// Parts of a safetensors header.
#pragma once

#include <string>

#include "base/json.h"
#include "weft/manifest.h"

namespace weft {

// Writes a member of the header, "name":{"dtype":…,"shape":…,"data_offsets":[…]}. `range` counts from the header's end.
void write_safetensors_entry(JsonWriter& json, const Tensor& tensor, Range range);
// Returns the length in 8 bytes, the text, and blanks up to a multiple of 8.
std::string framed_safetensors_header(std::string text);

}  // namespace weft
