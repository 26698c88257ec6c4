// The globals that a pickle of PyTorch names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/model/format.h"

namespace weft {

// True for a global that torch.load(weights_only=True) of PyTorch 2.13 allows by itself. Such globals prove no file
// safe.
bool is_allowed_global(std::string_view name);

// Adds the names to the metadata of a layout: all of them, and those that is_allowed_global() refuses (kGlobals and
// kOtherGlobals of weft/model/manifest.h).
void keep_globals(Layout& layout, const std::vector<std::string>& names);

}  // namespace weft
