#include "archindex/marks.h"

#include <algorithm>
#include <vector>

namespace weft {
namespace {

constexpr std::size_t kNearMax = 1024;

}  // namespace

std::uint64_t marks_beside(const ArchClass& of, std::span<const std::uint32_t> levels, std::size_t item) {
  const std::uint32_t level = levels[item];
  const auto first = static_cast<std::size_t>(
      std::ranges::partition_point(levels, [&](std::uint32_t l) { return l < level && !are_near(l, level); }) -
      levels.begin());
  const auto end = static_cast<std::size_t>(
      std::ranges::partition_point(levels, [&](std::uint32_t l) { return l < level || are_near(l, level); }) -
      levels.begin());
  if (end - first > kNearMax) return ~0ULL;
  std::uint64_t marks = 0;
  std::vector<bool> upstream(item + 1 - first);
  upstream[item - first] = true;
  for (std::size_t i = item + 1; i-- > first;) {
    if (!upstream[i - first]) {
      marks |= mark_of(of.id(i));
      continue;
    }
    for (std::uint32_t input : of.inputs[i])
      if (input >= first) upstream[input - first] = true;
  }
  std::vector<bool> downstream(end - item);
  downstream[0] = true;
  for (std::size_t i = item + 1; i < end; ++i) {
    downstream[i - item] =
        std::ranges::any_of(of.inputs[i], [&](std::uint32_t in) { return in >= item && downstream[in - item]; });
    if (!downstream[i - item]) marks |= mark_of(of.id(i));
  }
  return marks;
}

}  // namespace weft
