// A store of blobs. Packs are files in a directory of its own, places can be changed, and blobs and manifests of
// versions may be absent and fetched. Calls that need more of a store return Errc::unsupported.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "diskformat/pack_names.h"
#include "os/safe_path.h"
#include "testing.h"
#include "weft/store/cluster_store.h"

namespace weft::testing {

class BlobStore final : public Store, public FetchedCache {
 public:
  // Makes a pack of these bytes.
  PackId add_pack(std::string_view bytes);
  std::string pack_path(PackId pack) const { return directory_ / std::to_string(pack); }
  // Adds a blob: `length` bytes at `offset` of a pack. Returns an id derived from `name`.
  ContentId add_blob(std::uint64_t name, PackId pack, std::uint64_t offset, std::uint64_t length);
  void move_blob(const ContentId& id, PackId pack, std::uint64_t offset);
  void forget_blob(const ContentId& id);

  // Adds a version with this manifest, bare until it is adopted. Blobs that were not added are absent.
  VersionId add_version(const Digest& manifest, std::string_view publisher = "", std::uint64_t time_ns = 0);
  void own(const ContentId& id, VersionId first);  // sets the first holder of a blob
  void add_absent(const ContentId& id);
  Status no_room;               // returned by adds of fetched blobs
  Status no_pack;               // returned by fetch_pack()
  std::size_t adds() const;     // number of adds of fetched blobs
  std::atomic<int> filled = 0;  // number of packs that are being filled

  std::function<void()> before_lock = [] {};  // called by open_blob()
  std::atomic<int> locks = 0;                 // number of open_blob() calls
  std::atomic<int> snapshots = 0;             // number of snapshot() calls
  std::atomic<int> looks = 0;                 // number of lookups of blobs in snapshots

  const StoreInfo& info() const override { return info_; }
  const std::string& path() const override { return directory_.path(); }
  const SafePath& directory() const override { return safe_; }
  const std::optional<ClusterIdentity>& cluster() const override { return cluster_; }
  Result<std::unique_ptr<Snapshot>> snapshot() override;
  Result<IndexState> state() override;
  Result<StoreCounts> counts() override;
  Result<std::uint64_t> open_removed() override { return std::uint64_t{0}; }
  Result<VersionId> keeper(const InodeRow& view) override;
  Result<CommitBatch> commits(std::uint64_t from) override;
  Result<std::unique_ptr<CommitWatch>> watch_commits() override;
  Result<OpenPlace> open_blob(const ContentId& id) override;
  Result<OpenPlace> open_place(const ContentId& id, const BlobPlace& place) override;
  Result<std::shared_ptr<const ManifestReader>> open_manifest(const Digest& digest) override;
  Result<VersionHold> hold_version(VersionId version) override;
  Result<std::vector<VersionHold>> take_over_holds(std::span<const VersionId> versions) override;
  Result<std::unique_ptr<Import>> begin_import(Durability durability) override;
  Status set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number,
                 const Author& by) override;
  Status rename_model(std::string_view model, std::string_view to) override;
  Status describe(std::string_view model, std::uint64_t number, const DescriptionChange& change) override;
  Result<UndeletedVersion> undelete(std::string_view model, std::uint64_t number, const Author& by) override;
  Result<std::size_t> remove_versions(std::span<const VersionName> versions, Tagged tagged, const Author& by) override;
  Result<GcReport> gc(const GcOptions& options, Progress& progress) override;
  Result<FsckReport> fsck(const FsckOptions& options, const ContentDecoder& decode, Progress& progress) override;
  Result<std::unique_ptr<BlobRepair>> begin_repair() override;
  Result<ScrubReport> scrub(const ScrubOptions& options, Progress& progress) override;

  Status adopt(std::span<const Adoption> versions) override;
  Result<std::unique_ptr<FetchPack>> fetch_pack(std::uint64_t size) override;
  Result<std::unique_ptr<FetchPack>> resume_fetch(PackId pack) override;
  Result<std::vector<CachedPack>> cached_packs() override;
  Result<EvictReport> evict(const EvictOptions& options) override;
  EvictReport evicts;  // what evict() returns
  Result<std::vector<Digest>> chunks(const ContentId& id) override;
  Result<bool> make_evictable(PackId pack) override;
  Status pin(std::string_view model, std::uint64_t number, bool pinned) override;
  Result<std::optional<ForgottenPlace>> forget_damaged(const ContentId& id) override;
  Status put_back(const ContentId& id, const BlobPlace& place) override;

 private:
  class Filling;
  Result<OpenPlace> open_place(const BlobPlace& place) const;
  Result<std::unique_ptr<FetchPack>> fill(PackId pack, std::uint64_t size);

  TempDir directory_;
  const SafePath safe_ = must(SafePath::open_owned(directory_.path()));
  StoreInfo info_;
  std::optional<ClusterIdentity> cluster_;
  PackId packs_ = 0;
  std::uint64_t sequence_ = 0;
  mutable std::mutex mutex_;                  // guards the fields below
  std::map<ContentId, BlobPlace> places_;     // pack 0: absent
  std::map<VersionId, VersionRow> versions_;  // by number
  std::map<ContentId, VersionId> owners_;
  std::map<Digest, std::vector<std::byte>> manifests_;
  std::size_t adds_ = 0;
};

}  // namespace weft::testing
