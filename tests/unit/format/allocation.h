// Counts the allocations by operator new in this executable.
#pragma once

#include <cstddef>

namespace weft::testing {

struct Allocations {
  std::size_t largest = 0;  // bytes of the largest allocation
  std::size_t total = 0;    // bytes of all allocations, freed or not
  std::size_t peak = 0;     // bytes that were allocated at one time, beyond those at the reset
};
void reset_allocations();
Allocations allocations();  // since the last reset, all threads

}  // namespace weft::testing
