// The classes of traffic between nodes, and to the origin (header only).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weft {

// A class says who waits for the bytes of a request. Lower numbers go first.
enum class Traffic : std::uint8_t {
  foreground,  // a reader
  ahead,       // nobody yet
  staging,     // nobody: copies that nodes make for safety or for later, repairs, and what is written to the origin
};
inline constexpr std::array<std::string_view, 3> kTrafficNames{"foreground", "ahead", "staging"};

}  // namespace weft
