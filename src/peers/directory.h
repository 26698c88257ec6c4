// The directory that this node keeps for others: which nodes have announced that they have a whole version. Soft state:
// bounded, and dropped if an announcement is not repeated.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "peers/messages.h"

namespace weft {

// Any thread.
class PeerDirectory {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kKept{30};     // after an announcement
  static constexpr std::size_t kEntriesMax = 200'000;  // holders of all manifests; one takes about 200 bytes
  static constexpr std::size_t kManifestsMax = 100'000;

  // Replaces the node's previous announcement of this manifest. Dropped if the manifest has limits::kHoldersMax other
  // holders.
  void put(std::string_view node, const Announce& said, Clock::time_point now = Clock::now());
  // Returns the nodes that have the whole version.
  std::vector<std::string> find(const Digest& manifest, Clock::time_point now = Clock::now());
  std::size_t manifests() const;

 private:
  using Holders = std::map<std::string, Clock::time_point, std::less<>>;  // until when each counts
  void drop_old(Holders& holders, Clock::time_point now) WEFT_REQUIRES(mutex_);
  void make_room(Clock::time_point now) WEFT_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<Digest, Holders> holders_ WEFT_GUARDED_BY(mutex_);
  std::size_t count_ WEFT_GUARDED_BY(mutex_) = 0;  // holders of all manifests
};

}  // namespace weft
