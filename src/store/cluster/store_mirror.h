// Joins a cluster and mirrors its registry. Names come from the registry, content from StoreCache::adopt().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "store/parts/parts.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store_rows.h"

namespace weft {

class StoreMirror final : public RegistryMirror {
 public:
  explicit StoreMirror(StoreParts& parts) : parts_(parts) {}
  Status join(const ClusterIdentity& identity) override;
  Result<MirrorOutcome> apply(std::span<const MirrorChange> changes, std::uint64_t revision) override;
  Result<std::unique_ptr<PreparedUndelete>> prepare_undelete(std::string_view model, std::uint64_t number) override;

 private:
  StoreParts& parts_;
};

// As StoreMirror::apply(), for a store without a cluster that is restored from an origin: local packs add their blobs,
// whoever published them, and no content may be missing.
Result<MirrorOutcome> restore_changes(StoreParts& parts, std::span<const MirrorChange> changes);

}  // namespace weft
