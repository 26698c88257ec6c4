// The steps in which a large version attaches its content (attach.h) or releases it (release.h). Steps of one kind are
// contiguous.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace weft {

// Returns the steps of one kind among the steps from `from` to `end`, as indices within that kind. The kind has `count`
// steps, after `before` steps of other kinds.
struct StepRange {
  std::size_t first = 0;
  std::size_t count = 0;
};
inline StepRange steps_of_kind(std::size_t count, std::size_t before, std::uint64_t from, std::uint64_t end) {
  const auto at = [&](std::uint64_t step) {
    return std::min<std::uint64_t>(step - std::min<std::uint64_t>(step, before), count);
  };
  return {at(from), at(end) - at(from)};
}

template <class Step>
std::span<const Step> steps_of(const std::vector<Step>& steps, std::size_t before, std::uint64_t from,
                               std::uint64_t end) {
  const StepRange range = steps_of_kind(steps.size(), before, from, end);
  return std::span(steps).subspan(range.first, range.count);
}

// Returns the same steps as a list of indices within the kind.
inline std::vector<std::uint32_t> numbers_of(std::size_t count, std::size_t before, std::uint64_t from,
                                             std::uint64_t end) {
  const StepRange range = steps_of_kind(count, before, from, end);
  std::vector<std::uint32_t> numbers(range.count);
  std::iota(numbers.begin(), numbers.end(), static_cast<std::uint32_t>(range.first));
  return numbers;
}

}  // namespace weft
