// Chunks of blobs that passed to their readers without being kept, because the cache had no space for them. The last
// ones stay in memory for a while, for readers of small parts. Any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/lru_cache.h"
#include "weft/bytes/pack.h"
#include "weft/bytes/source.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// Copies bytes into a pack in memory with the id kPassingPack. Clients get copies of its descriptor. The destructor
// empties the pack, so that no client can hold its memory.
Result<std::shared_ptr<const PackReader>> passing_pack(std::span<const std::byte> bytes);

struct PassingChunk {
  ContentId id;
  std::uint64_t number = 0;
  friend bool operator==(const PassingChunk&, const PassingChunk&) = default;
};

}  // namespace weft

template <>
struct std::hash<weft::PassingChunk> {
  std::size_t operator()(const weft::PassingChunk& chunk) const noexcept {
    return std::hash<weft::ContentId>()(chunk.id) ^ std::hash<std::uint64_t>()(chunk.number);
  }
};

namespace weft {

class PassingBytes {
 public:
  explicit PassingBytes(std::size_t bytes_max) : chunks_(bytes_max) {}

  // `run`: one chunk, whose bytes are at `place`.
  void put(const ChunkRun& run, const OpenPlace& place);
  std::optional<OpenPlace> find(const ChunkRun& run);
  void drop_unused(std::chrono::steady_clock::duration age) { chunks_.drop_unused(age); }

 private:
  LruCache<OpenPlace, PassingChunk> chunks_;
};

}  // namespace weft
