// Chunks of blobs that passed to their readers without being kept, because the cache had no space for them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "weft/bytes/pack.h"
#include "weft/bytes/source.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

// Copies bytes into a pack in memory with the id kPassingPack. Clients get copies of its descriptor. The destructor
// empties the pack, so that no client can hold its memory.
Result<std::shared_ptr<const PackReader>> passing_pack(std::span<const std::byte> bytes);

// Returns a pack that keeps nothing, with the id kPassingPack: units of its transfer can only pass.
Result<std::unique_ptr<FetchPack>> pass_only_pack(std::uint64_t size);

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

// The last packs of bytes that passed, for readers of small parts. A pack is dropped as a whole, and packs in the order
// in which they came, so a reader of one chunk cannot keep a large pack. One thread at a time.
class PassingBytes {
 public:
  // Keeps at most `bytes_max` bytes. The newest pack stays, however large.
  explicit PassingBytes(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // `runs`: one chunk each, in the order of their bytes in the pack.
  void put(std::span<const ChunkRun> runs, const std::shared_ptr<const PackReader>& pack);
  std::optional<OpenPlace> find(const ChunkRun& run) const;
  void drop_older(std::chrono::steady_clock::duration age);  // the newest too

 private:
  using Clock = std::chrono::steady_clock;
  struct Pack {
    std::shared_ptr<const PackReader> reader;
    std::vector<PassingChunk> chunks;
    Clock::time_point came;
    std::uint64_t memory_bytes() const;
  };
  void drop_oldest();

  const std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  std::deque<Pack> packs_;  // the oldest first
  std::unordered_map<PassingChunk, OpenPlace> places_;
};

}  // namespace weft
