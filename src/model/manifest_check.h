// Checks the promises of weft/manifest.h.
#pragma once

#include "weft/manifest.h"
#include "weft/result.h"

namespace weft {

// Errc::invalid names the file, the tensor or extent, the expected value and the actual one.
Status check_manifest(const Manifest& manifest);

}  // namespace weft
