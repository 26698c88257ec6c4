// Prepared publishes rely on packs and manifests until the registry has decided.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "weft/content.h"
#include "weft/store_rows.h"

namespace weft {

// The local packs and the manifest that a prepared publish relies on, until the index has its version.
struct Promotion {
  std::set<PackId> held;     // packs that were in the store before
  std::set<PackId> cached;   // those of `held` that were cached
  std::set<PackId> brought;  // packs of this publish
  Digest manifest;
  std::uint64_t number = 0;  // from Reliances::add(); 0: not added yet
};

// The packs and manifests that prepared publishes of this process rely on. Only one process writes to a store in a
// cluster, so gc and eviction need no other source. Any thread.
class Reliances {
 public:
  using Clock = std::chrono::steady_clock;
  // Adds a publish and returns its number. Called under the writer lock, which gc also holds when it decides.
  std::uint64_t add(const Promotion& promotion);
  // `sure`: the index has the version, or the registry refused it. If not, the registry may still publish it within
  // kUnsureFor.
  void end(const Promotion& promotion, bool sure);
  bool is_last(PackId pack, std::uint64_t number) const;
  std::vector<PackId> packs() const;  // including those of recently ended publishes
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
  mutable Mutex mutex_;
  std::uint64_t count_ WEFT_GUARDED_BY(mutex_) = 0;
  std::map<PackId, Use> uses_ WEFT_GUARDED_BY(mutex_);
  std::map<Digest, Use> manifest_uses_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft
