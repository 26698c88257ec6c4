// The best matches of a query, out of the index of architectures.
#pragma once

#include <vector>

#include "base/limits.h"
#include "store/tables.h"
#include "weft/store.h"

namespace weft {

// Takes about steps_max steps of a search, and where that does not end, looks at all classes that share anything.
Result<std::vector<MatchHit>> match_architectures(Txn& txn, const MatchQuery& query,
                                                  std::uint64_t steps_max = limits::kMatchStepsMax);

}  // namespace weft
