// Which versions a removal means.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// Each once, in the order of `specs`: MODEL@V, or with `all` every live version of MODEL. All are found, or it fails.
Result<std::vector<VersionRow>> versions_to_remove(Store& store, std::span<const std::string> specs, bool all);

}  // namespace weft
