// The formats that there are. Each is stateless and lives for ever; formats.cc lists them.
#pragma once

#include "weft/format.h"

namespace weft {

const Format& safetensors_format();
const Format& gguf_format();
const Format& npy_format();

}  // namespace weft
