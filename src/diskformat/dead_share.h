// When a pack is worth a rewrite, in a store and at an origin.
#pragma once

#include <cstdint>

namespace weft {

inline constexpr std::uint64_t kDeadShare = 5;  // a pack with more than 1 / 5 dead bytes is rewritten

// True if more than this share of the listed bytes is dead.
inline bool has_dead_share(std::uint64_t listed_bytes, std::uint64_t dead_bytes) {
  return dead_bytes > listed_bytes / kDeadShare;
}

}  // namespace weft
