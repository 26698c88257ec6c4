// A BlobStore with a cache of fetched bytes. Blobs are added in packs that nobody evicts.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "fakes/blob_store.h"
#include "weft/store/cluster_store.h"

namespace weft::testing {

class CachingStore final : public BlobStore, public FetchedCache {
 public:
  Status no_room;               // returned by adds of fetched blobs
  Status no_pack;               // returned by fetch_pack()
  EvictReport evicts;           // what evict() returns
  std::atomic<int> filled = 0;  // number of packs that are being filled
  std::atomic<int> adds = 0;    // number of adds of fetched blobs

  Status adopt(std::span<const Adoption> versions) override;
  Result<std::unique_ptr<FetchPack>> fetch_pack(std::uint64_t size) override;
  Result<std::unique_ptr<FetchPack>> take_file(const SafePath& file) override;
  Result<std::unique_ptr<FetchPack>> resume_fetch(PackId pack) override;
  Result<std::vector<CachedPack>> cached_packs() override { return std::vector<CachedPack>(); }
  Result<EvictReport> evict(const EvictOptions&) override { return evicts; }
  Result<std::vector<Digest>> chunks(const ContentId&) override { return stubbed(); }
  Result<bool> make_evictable(PackId) override { return stubbed(); }
  Result<std::optional<ForgottenPlace>> forget_damaged(const ContentId&) override { return stubbed(); }
  Status put_back(const ContentId&, const BlobPlace&) override { return stubbed(); }

 private:
  class Filling;
  Result<std::unique_ptr<FetchPack>> fill(PackId pack, std::uint64_t size);
};

}  // namespace weft::testing
