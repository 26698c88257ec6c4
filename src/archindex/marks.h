// Each row of a class under one of its items carries 64 *marks*, a Bloom filter of its other items: each item *beside*
// that item sets one mark. If the mark of an item is missing, the class lacks the item. So a search rejects most
// classes that have one item and lack another without a lookup.
//
// Two items are beside each other if neither needs the other and their levels differ by less than kMarkedLevels. This
// depends on the two items only, not on the class: an id covers the whole upstream of its item.
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

// Returns the marks of the row under `item`, with `levels` = levels_of(of). If too many items are near, returns all
// marks: hardly one would be missing.
std::uint64_t marks_beside(const ArchClass& of, std::span<const std::uint32_t> levels, std::size_t item);

}  // namespace weft
