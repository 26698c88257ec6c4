// What a publish knows before it has read its content.
#pragma once

#include <string>
#include <vector>

#include "weft/manifest.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// The manifest that a publish of these files would make, but for the hashes of its extents. The store at `store_path`
// may not be among them.
Result<Manifest> draft_manifest(const std::vector<std::string>& paths, const std::string& store_path,
                                Progress& progress);

}  // namespace weft
