// The question which versions have an architecture like this one, to the index (archindex/match.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/store_rows.h"
#include "weft/version_content.h"

namespace weft {

struct MatchQuery {
  std::vector<ArchItem> items;
  std::string metric;     // decides between versions that share as much; "" for none
  bool smallest = false;  // of the metric's values the smallest is best, not the largest
  std::size_t top = 10;
  std::optional<VersionId> except;
};
struct MatchHit {
  VersionId version = 0;
  std::uint64_t shared = 0;  // items
};

}  // namespace weft
