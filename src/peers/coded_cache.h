// Coded chunks in memory: those that this node coded for others, and those that it received and verified. A chunk is
// coded by one thread at a time; others that want it wait. A coded chunk has no other place and is not announced: any
// holder of the chunk and of its base can make it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "base/chunk_codec.h"
#include "base/limits.h"
#include "base/lru_cache.h"
#include "base/mutex.h"
#include "weft/content.h"

namespace weft {

// A chunk of a blob, and the base that it is coded against: the chunk of the same number of another blob.
struct CodedKey {
  ContentId blob;
  Digest base;  // the root of a blob of the same length
  std::uint64_t chunk = 0;
  std::uint8_t width = 0;
  auto operator<=>(const CodedKey&) const = default;
};

}  // namespace weft

template <>
struct std::hash<weft::CodedKey> {
  std::size_t operator()(const weft::CodedKey& key) const noexcept {
    return std::hash<weft::ContentId>()(key.blob) ^ (key.chunk * 0x9e3779b97f4a7c15ULL) ^ key.base.bytes[0];
  }
};

namespace weft {

// Any thread.
class CodedCache {
 public:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  explicit CodedCache(std::size_t bytes_max = limits::kCodedCacheMax) : chunks_(bytes_max) {}

  // Returns the cached chunk, or the result of `code`: null if plain bytes are better, which is not cached. While one
  // thread codes a chunk, other threads wait for it.
  Bytes find_or(const CodedKey& key, const std::function<Bytes()>& code);
  void put(const CodedKey& key, Bytes coded);

  struct Figures {
    std::uint64_t bytes = 0;  // in memory
    std::uint64_t coded = 0;  // chunks that were coded here
    std::uint64_t found = 0;  // chunks that were found in memory
    std::uint64_t plain = 0;  // chunks for which plain bytes were better
  };
  Figures figures() const;

 private:
  LruCache<std::vector<std::byte>, CodedKey> chunks_;
  mutable Mutex mutex_;
  Condition done_;
  std::set<CodedKey> coding_ WEFT_GUARDED_BY(mutex_);
  Figures figures_ WEFT_GUARDED_BY(mutex_);
};

// A coder with buffers for a chunk and its base.
struct CodingDesk {
  ChunkCoder coder;
  std::unique_ptr<std::byte[]> base = std::make_unique_for_overwrite<std::byte[]>(kDigestChunk);
  std::unique_ptr<std::byte[]> chunk = std::make_unique_for_overwrite<std::byte[]>(kDigestChunk);
};

// The cache and the coders that answers and reads share. Any thread.
class PeerCoding {
 public:
  CodedCache cache;

  // Returns a desk for this caller only. A dropped desk is kept for the next caller; limits::kCodersKeptMax are kept.
  std::shared_ptr<CodingDesk> desk();

 private:
  struct Kept {
    Mutex mutex;
    std::vector<std::unique_ptr<CodingDesk>> desks WEFT_GUARDED_BY(mutex);
  };
  const std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

}  // namespace weft
