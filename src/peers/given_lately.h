// Which chunks were given to whom a moment ago: who can take others first is told to, and has these from that node
// soon.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weft/source.h"

namespace weft {

// Any thread.
class GivenLately {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kFor{2'000};
  static constexpr std::size_t kChunksMax = 4096;

  // Notes that they are given to this node. False when it yields, and another node was given some of them: nothing is
  // noted then.
  bool give(std::string_view node, std::span<const ChunkRun> runs, bool yields, Clock::time_point now = Clock::now());
  // They were not, after all.
  void forget(std::string_view node, std::span<const ChunkRun> runs);
  std::size_t chunks() const;

 private:
  struct Given {
    std::string node;
    Clock::time_point at;
  };
  using Chunk = std::pair<Digest, std::uint64_t>;  // a blob's root, its chunk
  bool given_to_other(std::string_view node, const ChunkRun& run, Clock::time_point now) const;
  void drop_old(Clock::time_point now);

  mutable std::mutex mutex_;
  std::map<Chunk, Given> given_;  // guarded by mutex_
};

}  // namespace weft
