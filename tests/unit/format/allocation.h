// Counts what operator new hands out in this executable.
#pragma once

#include <cstddef>

namespace weft::testing {

struct Allocations {
  std::size_t largest = 0;  // bytes of one
  std::size_t total = 0;    // bytes of all, freed or not
};
void reset_allocations();
Allocations allocations();  // since the last reset, all threads

}  // namespace weft::testing
