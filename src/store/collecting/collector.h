// gc: reaps removed versions, removes what failed publishes left, packs manifests, then collects the packs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/parts/parts.h"
#include "store/publishing/promotions.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/gc.h"

namespace weft {

// Any thread. Only one gc of a store runs at a time.
class Collector {
 public:
  Collector(StoreParts& parts, Promotions& promotions) : parts_(parts), promotions_(promotions) {}
  Result<GcReport> gc(const GcOptions& options, Progress& progress);  // as Store::gc()

 private:
  Status collect(const GcOptions& options, Progress& progress, GcReport& report);
  Status check_collectable(const GcOptions& options);
  Result<bool> begin_walk(const GcOptions& options);
  Status end_walk(std::uint64_t boot);
  Status remove_orphans(const GcOptions& options, GcReport& report);
  Result<std::vector<Digest>> unneeded(std::span<const Digest> manifests);

  StoreParts& parts_;
  Promotions& promotions_;
  bool walked_ = false;  // gc has looked at all packs since the store was opened; guarded by the collector's lock
};

}  // namespace weft
