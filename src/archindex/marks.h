// What the place of a class under one of its items says of its other items: 64 *marks*, one set by each item *beside*
// that one. Where an item's mark is missing the item is, so most classes that have one item and not another are told
// apart on the spot.
//
// Beside an item stand those that do not need it and that it does not need, with fewer than kMarkedLevels levels
// between them. That depends on the two items alone, not on the class: an id names all that is upstream.
#pragma once

#include <cstdint>
#include <span>

#include "archindex/class.h"

namespace weft {

inline constexpr std::uint32_t kMarkedLevels = 8;

inline std::uint64_t mark_of(Bytes id) {
  return 1ULL << (static_cast<unsigned char>(id[0]) % 64U);
}
inline bool are_near(std::uint32_t level, std::uint32_t other) {
  return level < other + kMarkedLevels && other < level + kMarkedLevels;
}

// `levels` as levels_of() has them. All marks where too many items are near: they would tell nothing.
std::uint64_t marks_beside(const ArchClass& of, std::span<const std::uint32_t> levels, std::size_t item);

}  // namespace weft
