// A binary search by number.
#pragma once

#include <cstdint>

namespace weft {

// Returns the smallest number of [0, count) for which `holds` is true, else `count`. `holds` is monotone: first false,
// then true.
template <class Holds>
std::uint64_t first_that(std::uint64_t count, const Holds& holds) {
  std::uint64_t begin = 0;
  while (begin < count) {
    const std::uint64_t middle = begin + (count - begin) / 2;
    if (holds(middle))
      count = middle;
    else
      begin = middle + 1;
  }
  return begin;
}

}  // namespace weft
