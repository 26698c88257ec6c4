// An identifier of 128 bits (header only). diskformat/uuid.h has its text.
#pragma once

#include <compare>
#include <cstdint>

namespace weft {

struct Uuid {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  bool empty() const { return high == 0 && low == 0; }
  auto operator<=>(const Uuid&) const = default;
};

}  // namespace weft
