// A binary search by number.
#pragma once

#include <cstdint>

namespace weft {

// The smallest of [0, count) for which `holds`, which is false and then true; else count.
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
