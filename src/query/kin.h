// Gathers a version's kin from the index.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/programs/operations.h"

namespace weft {

// The relatives of a version at one tick of the lineage clock (VersionRow::born, died). Later publishes and removals do
// not change the result for that tick. Names, messages, metrics and undeletes are the present ones.
struct GatheredKin {
  KinGraph graph;
  std::uint64_t clock = 0;       // tick of the last change in it: a publish, removal, undelete, rename or description
  std::uint64_t changed_ns = 0;  // time of that change
};

inline constexpr std::uint64_t kClockNow = UINT64_MAX;

// Returns the nearest `shown_max` relatives of at most limits::kKinCountedMax, breadth first, parents before children,
// older children before younger. Publishes and removals after the tick `clock` are ignored.
Result<GatheredKin> gather_kin(Store& store, VersionId version, KinWay way, std::size_t shown_max,
                               std::uint64_t clock = kClockNow);

// Sets the marks of a graph to the present tags and new bytes of its versions.
Status add_marks(Store& store, KinGraph& kin);

}  // namespace weft
