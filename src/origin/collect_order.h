// The registry's part of a collection of the origin, for a node of a cluster.
#pragma once

#include <functional>

#include "origin/collect.h"
#include "weft/bytes/cold.h"
#include "weft/cluster/registry.h"
#include "weft/store/store.h"

namespace weft {

// One thread.
class RegistryOrder final : public CollectionOrder {
 public:
  // All outlive this. `resolver` fetches manifests that the store lacks.
  RegistryOrder(Registry& registry, Store& store, ManifestResolver& resolver)
      : registry_(registry), store_(store), resolver_(resolver) {}

  Result<std::vector<VersionRow>> versions() override;
  Result<std::vector<std::byte>> manifest(const VersionRow& row) override;
  Result<bool> is_live(const VersionRow& row) override;
  OriginCollection latest() override { return registry_.origin_collection(); }
  Status announce(const OriginCollection& next) override { return registry_.announce(next); }

 private:
  Registry& registry_;
  Store& store_;
  ManifestResolver& resolver_;
};

}  // namespace weft
