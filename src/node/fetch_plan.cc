#include "node/fetch_plan.h"

#include <algorithm>
#include <unordered_set>

namespace weft {
namespace {

// Puts chunks behind those before, into the last unit while they touch and fit.
void append(FetchPlan& plan, std::uint64_t offset, FetchUnit::Part part, std::uint64_t unit_max) {
  const std::uint64_t length = part.run.length();
  const bool goes_on = !plan.units.empty() && plan.units.back().offset + plan.units.back().length == offset &&
                       plan.units.back().length + length <= unit_max;
  if (!goes_on) plan.units.push_back({offset, 0, {}});
  plan.units.back().length += length;
  plan.units.back().parts.push_back(part);
}

}  // namespace

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
      append(plan, extent.offset + run.offset(), {blob, run}, unit_max);
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
