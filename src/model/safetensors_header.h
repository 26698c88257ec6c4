// Parts of a safetensors header.
#pragma once

#include <string>

#include "base/json.h"
#include "weft/manifest.h"

namespace weft {

// "name":{"dtype":…,"shape":…,"data_offsets":[…]}, a member of the header; `range` from the end of the header on.
void write_safetensors_entry(JsonWriter& json, const Tensor& tensor, Range range);
// The length in 8 bytes, the text, blanks up to a multiple of 8.
std::string framed_safetensors_header(std::string text);

}  // namespace weft
