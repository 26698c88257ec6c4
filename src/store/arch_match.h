// The best matches of a query, out of the index of architectures.
#pragma once

#include <vector>

#include "store/tables.h"
#include "weft/store.h"

namespace weft {

Result<std::vector<MatchHit>> match_architectures(Txn& txn, const MatchQuery& query);

}  // namespace weft
