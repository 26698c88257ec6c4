// Reaps removed versions that are not open, which frees the content that only they need.
#pragma once

#include "store/parts/parts.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/gc.h"

namespace weft {

// For gc. One thread. Adds the reaped and the open versions to the report. A dry run only counts them.
Status reap(StoreParts& parts, const GcOptions& options, Progress& progress, GcReport& report);

}  // namespace weft
