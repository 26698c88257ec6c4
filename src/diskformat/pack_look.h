// What gc notes of packs in the index (index/gc_queue.h).
#pragma once

#include <cstdint>
#include <optional>

#include "weft/store_rows.h"

namespace weft {

// A pack and a number that is noted of it. In the queue: when it was queued. Of dead bytes: so many.
struct NotedPack {
  PackId pack = 0;
  std::uint64_t value = 0;
};

// What a look at a pack has found.
struct PackLook {
  PackId pack = 0;
  std::optional<std::uint64_t> queued;  // when, as the look found it; it stays queued if that has changed
  bool again = false;                   // the next gc has to look at it, too
  std::uint64_t dead_bytes = 0;         // that stay there
  bool gone = false;                    // the pack, for good: ids are not used again
};

}  // namespace weft
