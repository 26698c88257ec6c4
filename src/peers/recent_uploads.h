// Recent uploads by chunk. If a peer can take chunks in any order, it is refused a chunk that another peer just
// received: it can soon fetch that chunk from the other peer.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "weft/bytes/source.h"

namespace weft {

// Any thread.
class RecentUploads {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kFor{2'000};
  static constexpr std::size_t kChunksMax = 4096;

  // Records an upload to `node`. False, without a record, if `node` yields and another node just received one of the
  // chunks.
  bool record(std::string_view node, std::span<const ChunkRun> runs, bool yields, Clock::time_point now = Clock::now());
  // Removes the record of an upload that did not take place.
  void forget(std::string_view node, std::span<const ChunkRun> runs);
  std::size_t chunks() const;

 private:
  struct Upload {
    std::string node;
    Clock::time_point at;
  };
  using Chunk = std::pair<Digest, std::uint64_t>;  // a blob's root, the chunk's number
  bool is_at_other(std::string_view node, const ChunkRun& run, Clock::time_point now) const WEFT_REQUIRES(mutex_);
  void drop_old(Clock::time_point now) WEFT_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<Chunk, Upload> uploads_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft
