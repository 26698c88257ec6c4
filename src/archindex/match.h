// Finds the versions that share the most items with a query, using the index of architectures.
#pragma once

#include <vector>

#include "base/limits.h"
#include "index/tables.h"
#include "weft/model/arch_match.h"
#include "weft/result.h"

namespace weft {

// Cost of a match.
struct MatchWork {
  std::uint64_t items = 0;    // query items looked up in the index
  std::uint64_t places = 0;   // rows read: classes that have such an item
  std::uint64_t asked = 0;    // lookups of an item that a class seemed to have
  std::uint64_t classes = 0;  // classes compared as a whole
};

// Returns the best matches. A search that does not end within about `steps_max` steps counts the shared items of all
// classes instead. `work`, if not null, receives the cost.
Result<std::vector<MatchHit>> match_architectures(Txn& txn, const MatchQuery& query,
                                                  std::uint64_t steps_max = limits::kMatchStepsMax,
                                                  MatchWork* work = nullptr);

}  // namespace weft
