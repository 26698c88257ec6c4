// Packs that were cached and that a publish made this node's own, and the way back, when nothing came of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "weft/content.h"
#include "weft/store_rows.h"

namespace weft {

// What one prepared publish needs that is here, until the index has its version.
struct Promotion {
  std::set<PackId> held;     // packs that were here before it
  std::set<PackId> cached;   // of these, those that were cached
  std::set<PackId> brought;  // packs that came with it
  Digest manifest;
  std::uint64_t number = 0;  // of its Reliances; 0: none yet
};

// Which packs and manifests prepared publishes of this process rely on. In a cluster one process writes to the store,
// so that gc and eviction need no other word of them. Any thread.
class Reliances {
 public:
  using Clock = std::chrono::steady_clock;
  // By the number that it gives, the publish is known. Under the writer lock, as the look that gc and eviction take.
  std::uint64_t add(const Promotion& promotion);
  // `sure`: the index has the version, or it was not published. Else the registry may still bring it, for a while.
  void end(const Promotion& promotion, bool sure);
  bool is_last(PackId pack, std::uint64_t number) const;
  std::vector<PackId> packs() const;  // that publishes rely on, or did
  bool is_needed(PackId pack) const;
  bool is_needed(const Digest& manifest) const;

 private:
  struct Use {
    std::uint64_t last = 0;
    unsigned open = 0;
    Clock::time_point unsure_until{};
    bool is_needed() const { return open > 0 || unsure_until > Clock::now(); }
  };
  template <class Uses, class Key>
  void end_use(Uses& uses, const Key& key, bool sure);
  mutable std::mutex mutex_;
  std::uint64_t count_ = 0;              // guarded by mutex_
  std::map<PackId, Use> uses_;           // guarded by mutex_
  std::map<Digest, Use> manifest_uses_;  // guarded by mutex_
};

}  // namespace weft
