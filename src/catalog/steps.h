// The steps in which a version takes its content, or gives it back: those of one kind stand together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace weft {

// Those of one kind among the steps from `from` to `end`, as numbers of that kind: so many steps of other kinds come
// before it, and it has `count`.
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

// Where the steps of a kind are the numbers from 0 on.
inline std::vector<std::uint32_t> numbers_of(std::size_t count, std::size_t before, std::uint64_t from,
                                             std::uint64_t end) {
  const StepRange range = steps_of_kind(count, before, from, end);
  std::vector<std::uint32_t> numbers(range.count);
  std::iota(numbers.begin(), numbers.end(), static_cast<std::uint32_t>(range.first));
  return numbers;
}

}  // namespace weft
