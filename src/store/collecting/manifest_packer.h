// Moves small manifests from files into packs. It places the new pack before the index names it, and removes the files
// only after that. So each manifest exists at least once after a crash, and the next gc removes the duplicates.
#pragma once

#include "store/parts/parts.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// For gc. One thread.
Status pack_manifests(StoreParts& parts, Progress& progress);

}  // namespace weft
