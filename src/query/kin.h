// Gathers a version's kin from the index.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/node.h"

namespace weft {

// What was gathered is what a lineage clock (VersionRow::born, died) shows: the same at any later time, whatever was
// published or removed meanwhile.
struct GatheredKin {
  KinGraph graph;
  std::uint64_t clock = 0;       // of the last publish or removal that had a part in it
  std::uint64_t changed_ns = 0;  // when that was
};

inline constexpr std::uint64_t kClockNow = UINT64_MAX;

// The nearest `shown_max` of at most limits::kKinCountedMax, breadth first, parents before children, older children
// before younger. `clock`: publishes and removals after it have not happened.
Result<GatheredKin> gather_kin(Store& store, VersionId version, KinWay way, std::size_t shown_max,
                               std::uint64_t clock = kClockNow);

}  // namespace weft
