// The classes of traffic between nodes (header only).
#pragma once

#include <cstdint>

namespace weft {

// A class says who waits for the bytes of a request. Lower numbers go first. A class for staging comes below `ahead`,
// with the next number, when staging exists.
enum class Traffic : std::uint8_t {
  foreground,  // a reader
  ahead,       // nobody yet
};

}  // namespace weft
