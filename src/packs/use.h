// Which packs of a directory may be evicted, and in which order.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "os/safe_path.h"
#include "weft/cluster_store.h"

namespace weft {

// Those of these packs that are in the directory, least recently used first.
Result<std::vector<CachedPack>> packs_by_use(const SafePath& directory, std::span<const PackId> ids,
                                             const std::set<PackId>& pinned);

}  // namespace weft
