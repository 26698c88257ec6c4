// Joins a cluster and mirrors its registry. Names come from the registry, content from adopt().
#pragma once

#include <cstdint>
#include <span>

#include "store/parts/parts.h"
#include "weft/cluster_store.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Any thread. The functions are those of ClusterStore.
class StoreMirror {
 public:
  explicit StoreMirror(StoreParts& parts) : parts_(parts) {}
  Status join(const ClusterIdentity& identity);
  Result<MirrorOutcome> mirror(std::span<const MirrorChange> changes, std::uint64_t revision);
  Status adopt(std::span<const Adoption> versions);

 private:
  StoreParts& parts_;
};

// As StoreMirror::mirror(), for a store without a cluster that is restored from an origin: local packs add their blobs,
// whoever published them, and no content may be missing.
Result<MirrorOutcome> restore_changes(StoreParts& parts, std::span<const MirrorChange> changes);

}  // namespace weft
