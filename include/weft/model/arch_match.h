// A query to the index for versions with a similar architecture (archindex/match.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/model/version_content.h"
#include "weft/store_rows.h"

namespace weft {

struct MatchQuery {
  std::vector<ArchItem> items;
  std::string metric;     // orders versions that share equally many items; "" for none
  bool smallest = false;  // the smallest value of the metric is best, not the largest
  std::size_t top = 10;
  std::optional<VersionId> except;
};
struct MatchHit {
  VersionId version = 0;
  std::uint64_t shared = 0;  // number of items in common with the query
};

}  // namespace weft
