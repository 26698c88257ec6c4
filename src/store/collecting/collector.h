// gc: reaps removed versions, removes what failed publishes left, packs manifests, then collects the packs.
#pragma once

#include "store/parts/parts.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/gc.h"

namespace weft {

// As Store::gc(). Any thread. Only one gc of a store runs at a time.
Result<GcReport> gc(StoreParts& parts, const GcOptions& options, Progress& progress);

}  // namespace weft
