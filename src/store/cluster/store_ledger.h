// Records how much of this store the origin has: its versions and the catalog events of the journal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/env.h"
#include "store/parts/parts.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store_rows.h"

namespace weft {

class StoreLedger final : public OriginLedger {
 public:
  explicit StoreLedger(StoreParts& parts) : parts_(parts) {}
  Status saved(std::span<const VersionId> versions) override;
  Result<std::string> origin() override;
  Status set_origin(const std::string& uuid) override;
  Result<CatalogEvents> events(std::uint64_t from) override;
  Result<std::uint64_t> replicated(std::string_view origin) override;
  Status set_replicated(std::string_view origin, std::uint64_t end) override;

 private:
  Result<std::vector<VersionId>> own_versions(Txn& txn) const;  // live versions of this node

  StoreParts& parts_;
};

}  // namespace weft
