// The directory of chunk holders that this node keeps from the announcements of other nodes. Soft state: bounded, and
// dropped if an announcement is not repeated.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "peers/messages.h"

namespace weft {

// Returns the nodes that keep the directory of a manifest, at most `count_max`, in the order of preference. It uses
// rendezvous hashing, so that few manifests move if a node joins or leaves.
std::vector<std::string> directory_nodes(const Digest& manifest, std::span<const std::string> nodes,
                                         std::size_t count_max);

// Any thread.
class PeerDirectory {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kKept{30};  // after an announcement
  static constexpr std::size_t kManifestsMax = 100'000;
  static constexpr std::size_t kBytesMax = 32U << 20U;  // of bits

  // Replaces the node's previous announcement of this manifest. Dropped if the manifest has kHoldersMax other holders.
  void put(std::string_view node, HadChunks had, Clock::time_point now = Clock::now());
  std::vector<HadChunks> find(const Digest& manifest, Clock::time_point now = Clock::now());
  std::size_t manifests() const;

 private:
  struct Entry {
    HadChunks had;
    Clock::time_point until;
  };
  using Holders = std::map<std::string, Entry, std::less<>>;
  void drop_old(Holders& holders, Clock::time_point now) WEFT_REQUIRES(mutex_);
  void make_room(Clock::time_point now) WEFT_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<Digest, Holders> holders_ WEFT_GUARDED_BY(mutex_);
  std::size_t bytes_ WEFT_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
