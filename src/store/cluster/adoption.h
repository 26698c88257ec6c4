// Gives bare versions their content.
#pragma once

#include <span>

#include "store/parts/parts.h"
#include "weft/cluster_store.h"
#include "weft/result.h"

namespace weft {

Status adopt(StoreParts& parts, std::span<const Adoption> versions);  // as FetchedCache::adopt()

}  // namespace weft
