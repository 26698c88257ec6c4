// The best matches of a query, out of the index of architectures.
#pragma once

#include <vector>

#include "base/limits.h"
#include "index/tables.h"
#include "weft/arch_match.h"
#include "weft/result.h"

namespace weft {

// What a match had to look at.
struct MatchWork {
  std::uint64_t items = 0;    // of the query, in the index
  std::uint64_t places = 0;   // of classes that have one of them
  std::uint64_t asked = 0;    // items that such a class seemed to have
  std::uint64_t classes = 0;  // as a whole
};

// Takes about steps_max steps of a search, and where that does not end, looks at all classes that share anything.
Result<std::vector<MatchHit>> match_architectures(Txn& txn, const MatchQuery& query,
                                                  std::uint64_t steps_max = limits::kMatchStepsMax,
                                                  MatchWork* work = nullptr);

}  // namespace weft
