// Versions that were published into memory: the packs that must reach the disk to make them durable, and the bytes that
// were lost if the machine stopped before. They become durable in the order of their publishes, so that each comes
// after the versions that it shares content with.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string_view>

#include "diskformat/toc.h"
#include "store/parts/parts.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store/publish.h"
#include "weft/store_rows.h"

namespace weft {

class StoreMemory final : public MemoryVersions {
 public:
  explicit StoreMemory(StoreParts& parts) : parts_(parts) {}
  Result<MemoryState> flush_version(VersionId version, const FlushPace& pace) override;
  Result<std::uint64_t> unsynced_bytes(VersionId version) override;
  Status keep_version(std::string_view model, std::uint64_t number) override;
  Status lose_version(std::string_view model, std::uint64_t number, std::string_view why) override;

 private:
  Status forget_lost(PackId pack, std::span<const PackEntry> lost);
  Status flush_packs(const std::set<PackId>& packs, const FlushPace& pace);

  StoreParts& parts_;
};

// True if the version needs bytes that are only in memory. Blobs that the publish itself brings need not be in the
// index.
Result<bool> relies_on_memory(StoreParts& parts, Txn& txn, const PublishRequest& request);

}  // namespace weft
