// The cache of fetched packs: makes, lists and evicts packs. A pack leaves the index before the disk, so the index
// names only packs that exist.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "packs/collect.h"
#include "store/parts/parts.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store/snapshot.h"
#include "weft/store_rows.h"

namespace weft {

class StoreCache final : public FetchedCache {
 public:
  explicit StoreCache(StoreParts& parts) : parts_(parts) {}
  Status adopt(std::span<const Adoption> versions) override;  // adoption.cc
  Result<std::unique_ptr<FetchPack>> fetch_pack(std::uint64_t size) override;
  Result<std::unique_ptr<FetchPack>> resume_fetch(PackId pack) override;
  Result<std::vector<CachedPack>> cached_packs() override;
  Result<EvictReport> evict(const EvictOptions& options) override;
  Result<std::vector<Digest>> chunks(const ContentId& id) override { return parts_.packs.chunks(id); }
  Result<bool> make_evictable(PackId pack) override;
  Result<std::optional<ForgottenPlace>> forget_damaged(const ContentId& id) override;
  Status put_back(const ContentId& id, const BlobPlace& place) override;
  Result<std::unique_ptr<FetchPack>> take_file(const SafePath& file) override;

 private:
  Status add_packs_of(std::span<const ContentId> blobs, std::set<PackId>& packs);
  Result<std::vector<ContentId>> blobs_of_live(VersionId id);
  Result<std::set<PackId>> pinned_packs();
  Result<bool> evict_pack(PackId pack, UnreapedContent& open);

  StoreParts& parts_;
  Mutex mutex_;
  std::map<VersionId, std::vector<ContentId>> blobs_of_pinned_ WEFT_GUARDED_BY(mutex_);  // of pinned versions, sorted
  std::optional<IndexState> pinned_at_ WEFT_GUARDED_BY(mutex_);  // the state of the index that `pinned_` is true for
  std::set<PackId> pinned_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft
