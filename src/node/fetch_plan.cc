#include "node/fetch_plan.h"

#include <algorithm>
#include <unordered_set>

namespace weft {
FetchPlan plan_fetch(std::span<const Extent> absent, std::uint64_t unit_max) {
  FetchPlan plan;
  std::unordered_set<ContentId> seen;
  for (const Extent& extent : absent) {
    if (!seen.insert(extent.id).second) continue;
    const std::size_t blob = plan.blobs.size();
    plan.blobs.push_back(extent);
    const std::uint64_t chunks = (extent.id.length - 1) / kDigestChunk + 1;
    const std::uint64_t step = unit_max / kDigestChunk;
    for (std::uint64_t first = 0; first < chunks; first += step) {
      const ChunkRun run{extent.id, first, std::min(step, chunks - first)};
      plan.units.push_back({extent.offset + run.offset(), run.length(), blob, run});
    }
  }
  return plan;
}

std::pair<std::size_t, std::size_t> units_in(const FetchPlan& plan, Range range) {
  const auto ends_before = [](const FetchUnit& unit, std::uint64_t at) { return unit.offset + unit.length <= at; };
  const auto begins_before = [](const FetchUnit& unit, std::uint64_t at) { return unit.offset < at; };
  const auto first = std::lower_bound(plan.units.begin(), plan.units.end(), range.offset, ends_before);
  const auto end = std::lower_bound(first, plan.units.end(), range.offset + range.length, begins_before);
  return {static_cast<std::size_t>(first - plan.units.begin()), static_cast<std::size_t>(end - plan.units.begin())};
}

}  // namespace weft
