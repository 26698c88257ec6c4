// Numbers the chunks of a manifest, so that a bit map can list the chunks that a node has. The order goes through all
// distinct blobs as they first appear, file by file. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "peers/messages.h"
#include "weft/bytes/source.h"
#include "weft/model/manifest.h"

namespace weft {

class ChunkMap {
 public:
  explicit ChunkMap(const Manifest& manifest);
  std::uint64_t chunks() const { return chunks_; }
  // Chunks for each bit: more than one if the bits would not fit into an announcement.
  std::uint32_t chunks_per_bit() const { return chunks_per_bit_; }
  std::optional<std::uint64_t> number_of(const ContentId& id) const;  // number of the blob's first chunk
  const std::unordered_map<ContentId, std::uint64_t>& blobs() const { return first_; }
  // True if `had` lists all chunks of the run. False if its bits do not fit this manifest.
  bool has(const HadChunks& had, const ChunkRun& run) const;

 private:
  std::unordered_map<ContentId, std::uint64_t> first_;
  std::uint64_t chunks_ = 0;
  std::uint32_t chunks_per_bit_ = 1;
};

// The local chunks of a manifest.
class ChunkSet {
 public:
  explicit ChunkSet(const ChunkMap& map) : bits_(map.chunks()) {}
  void add(std::uint64_t first, std::uint64_t count);
  void add(const ChunkSet& other);  // of the same map
  bool all() const { return count_ == bits_.size(); }
  bool none() const { return count_ == 0; }
  // Returns the set as an announcement.
  HadChunks told(const Digest& manifest, const ChunkMap& map) const;

 private:
  std::vector<bool> bits_;
  std::uint64_t count_ = 0;
};

}  // namespace weft
