// The notes that gc keeps about packs in the index (index/gc_queue.h).
#pragma once

#include <cstdint>
#include <optional>

#include "weft/store_rows.h"

namespace weft {

// A pack and its noted number. In gc's queue: the transaction that queued the pack. Else: its dead bytes.
struct NotedPack {
  PackId pack = 0;
  std::uint64_t value = 0;
};

// The result of gc for a pack.
struct PackVerdict {
  PackId pack = 0;
  std::optional<std::uint64_t>
      queued;                    // queue entry before the verdict; if it has changed since, the pack stays queued
  bool again = false;            // the next gc must judge the pack too
  std::uint64_t dead_bytes = 0;  // dead bytes that gc left in the pack
  bool gone = false;             // the pack is deleted for good: ids are not reused
};

}  // namespace weft
