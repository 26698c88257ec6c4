// Who has which chunks of which manifests, as nodes announce it to the one whose turn it is: soft state, bounded, that
// is forgotten when it is not said again.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peers/messages.h"

namespace weft {

// The nodes that keep the directory of a manifest, the first one first: by rendezvous hashing, so that a node that
// comes or goes moves few manifests. At most `count_max`.
std::vector<std::string> directory_nodes(const Digest& manifest, std::span<const std::string> nodes,
                                         std::size_t count_max);

// Any thread.
class PeerDirectory {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kKept{30};   // after it was announced
  static constexpr std::chrono::seconds kMoving{3};  // unless it says so again
  static constexpr std::size_t kManifestsMax = 100'000;
  static constexpr std::size_t kBytesMax = 32U << 20U;  // of bits

  // Takes the place of what this node said of this manifest before. Bits that have no room are not kept.
  void put(std::string_view node, HadChunks had, Clock::time_point now = Clock::now());
  std::vector<HadChunks> find(const Digest& manifest, Clock::time_point now = Clock::now());
  std::size_t manifests() const;

 private:
  struct Entry {
    HadChunks had;
    Clock::time_point until;
  };
  using Holders = std::map<std::string, Entry, std::less<>>;
  void drop_old(Holders& holders, Clock::time_point now);
  void make_room(Clock::time_point now);

  mutable std::mutex mutex_;
  std::map<Digest, Holders> holders_;  // guarded by mutex_
  std::size_t bytes_ = 0;              // guarded by mutex_
};

}  // namespace weft
