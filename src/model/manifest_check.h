// The promises of weft/manifest.h, checked.
#pragma once

#include "weft/manifest.h"
#include "weft/result.h"

namespace weft {

// Errc::invalid names the file, the tensor or extent, what was expected and what is there.
Status check_manifest(const Manifest& manifest);

}  // namespace weft
