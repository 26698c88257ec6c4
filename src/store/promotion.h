// Packs that were cached and that a publish made this node's own, and the way back, when nothing came of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "weft/store.h"

namespace weft {

// Which packs publishes of this process rely on as being here, until the index has their versions. Any thread.
class Reliances {
 public:
  using Clock = std::chrono::steady_clock;
  // By the number that it gives, the publish is known.
  std::uint64_t add(const std::set<PackId>& packs);
  // `sure`: the index has the version, or it was not published. Else the registry may still bring it, for a while.
  void end(const std::set<PackId>& packs, bool sure);
  bool is_last(PackId pack, std::uint64_t number) const;
  bool is_needed(PackId pack) const;

 private:
  struct Use {
    std::uint64_t last = 0;
    unsigned open = 0;
    Clock::time_point unsure_until{};
  };
  mutable std::mutex mutex_;
  std::uint64_t count_ = 0;     // guarded by mutex_
  std::map<PackId, Use> uses_;  // guarded by mutex_
};

// What one publish relies on.
struct Promotion {
  std::set<PackId> held;     // packs that were here before it
  std::set<PackId> packs;    // of these, those that were cached
  std::uint64_t number = 0;  // of its Reliances
};

}  // namespace weft
