// The store's implementation, for the other files of this folder. Tests use it directly: with hooks between the steps
// of a commit, and to publish without an import.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/plan.h"
#include "catalog/taking.h"
#include "packs/collect.h"
#include "store/checking/checking.h"
#include "store/collecting/collector.h"
#include "store/parts/parts.h"
#include "store/publishing/memory_versions.h"
#include "store/publishing/prepared_publishes.h"
#include "store/publishing/promotions.h"
#include "store/publishing/publisher.h"
#include "weft/cluster_store.h"
#include "weft/commits.h"
#include "weft/fsck.h"
#include "weft/gc.h"
#include "weft/pack.h"
#include "weft/publish.h"
#include "weft/snapshot.h"
#include "weft/store.h"
#include "weft/version_content.h"

namespace weft {

class StoreImpl final : public ClusterStore {
 public:
  static Result<std::unique_ptr<StoreImpl>> open(const std::string& path, const OpenOptions& options,
                                                 CommitHooks hooks = {});
  // As ClusterStore::open.
  static Result<std::unique_ptr<StoreImpl>> open_as_daemon(const std::string& path, const OpenOptions& options,
                                                           CommitHooks hooks = {});

  const StoreInfo& info() const override { return info_; }
  const std::string& path() const override { return parts_.path.str(); }
  const SafePath& directory() const override { return parts_.path; }
  const std::optional<ClusterIdentity>& cluster() const override { return parts_.cluster.identity(); }
  Result<std::unique_ptr<Snapshot>> snapshot() override;
  Result<IndexState> state() override { return parts_.index.env().state(); }
  Result<StoreCounts> counts() override;
  Result<std::uint64_t> open_removed() override;
  Result<VersionId> keeper(const InodeRow& view) override;
  Result<CommitBatch> commits(std::uint64_t from) override;
  Result<std::unique_ptr<CommitWatch>> watch_commits() override;
  Result<OpenPlace> open_blob(const ContentId& id) override { return parts_.packs.open_blob(id); }
  Result<OpenPlace> open_place(const ContentId& id, const BlobPlace& place) override {
    return parts_.packs.open_place(id, place);
  }
  Result<std::shared_ptr<const ManifestReader>> open_manifest(const Digest& digest) override {
    return parts_.manifests.open(digest);
  }
  Result<VersionHold> hold_version(VersionId version) override;
  Result<std::vector<VersionHold>> take_over_holds(std::span<const VersionId> versions) override {
    return parts_.open_versions->take_over(versions);
  }
  Status look(VersionId version) override;
  Result<std::unique_ptr<Import>> begin_import(Durability durability) override {
    return publisher_.begin_import(durability);
  }
  Status set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number) override {
    return publisher_.set_tag(model, tag, number);
  }
  Result<std::size_t> remove_versions(std::span<const VersionName> versions) override {
    return publisher_.remove_versions(versions);
  }
  Result<GcReport> gc(const GcOptions& options, Progress& progress) override {
    return collector_.gc(options, progress);
  }
  Result<FsckReport> fsck(const FsckOptions& options, const ContentDecoder& decode, Progress& progress) override {
    return weft::fsck(parts_, options, decode, progress);
  }

  Result<std::unique_ptr<BlobRepair>> begin_repair() override { return weft::begin_repair(parts_); }
  Result<ScrubReport> scrub(const ScrubOptions& options, Progress& progress) override {
    return weft::scrub(parts_, options, progress);
  }

  Status join(const ClusterIdentity& identity) override;
  Result<MirrorOutcome> mirror(std::span<const MirrorChange> changes, std::uint64_t revision) override;
  Status adopt(std::span<const Adoption> versions) override;
  Result<std::unique_ptr<FetchPack>> fetch_pack(std::uint64_t size) override;
  Result<std::unique_ptr<FetchPack>> resume_fetch(PackId pack) override;
  Result<std::vector<CachedPack>> cached_packs() override;
  Result<EvictReport> evict(const EvictOptions& options) override;
  Result<std::vector<Digest>> chunks(const ContentId& id) override { return parts_.packs.chunks(id); }
  Result<bool> make_evictable(PackId pack) override;
  Status pin(std::string_view model, std::uint64_t number, bool pinned) override {
    return publisher_.pin(model, number, pinned);
  }
  Result<std::optional<ForgottenPlace>> forget_damaged(const ContentId& id) override;
  Status put_back(const ContentId& id, const BlobPlace& place) override;
  Result<MemoryState> settle_version(VersionId version, const FlushPace& pace) override {
    return memory_.settle_version(version, pace);
  }
  Result<std::uint64_t> unsynced_bytes(VersionId version) override { return memory_.unsynced_bytes(version); }
  Status keep_version(std::string_view model, std::uint64_t number) override {
    return memory_.keep_version(model, number);
  }
  Status lose_version(std::string_view model, std::uint64_t number, std::string_view why) override {
    return memory_.lose_version(model, number, why);
  }
  Status saved(std::span<const VersionId> versions) override;
  Result<SaidBatch> said(std::uint64_t from) override;
  Result<std::string> origin() override;
  Status set_origin(const std::string& uuid) override;
  Result<std::uint64_t> told(std::string_view origin) override;
  Status set_told(std::string_view origin, std::uint64_t end) override;

  // Opens a store that is still being made: its directory is laid out, and the caller holds the maker's lock. For
  // writing.
  static Result<std::unique_ptr<StoreImpl>> open_unfinished(const SafePath& path, const OpenOptions& options);
  StoreParts& parts() { return parts_; }
  Publisher& publisher() { return publisher_; }
  // As mirror(), for a store without a cluster that is restored from an origin: local packs add their blobs, whoever
  // published them, and no content may be missing.
  Result<MirrorOutcome> restore(std::span<const MirrorChange> changes);
  // Deletes the files of an unused store: no commit was ever made, and no other process has it open. False: the store
  // stays.
  Result<bool> remove_unused();

 private:
  StoreImpl(StoreInfo info, std::unique_ptr<StoreParts> parts, Fd writes)
      : info_(std::move(info)), writes_(std::move(writes)), owned_(std::move(parts)), parts_(*owned_) {}
  static Result<std::unique_ptr<StoreImpl>> open_held(const SafePath& path, const OpenOptions& options,
                                                      CommitHooks hooks, Fd writes);
  Status check_joinable(const WriterLock& lock);
  Status add_packs_of(VersionId id, std::set<PackId>& packs);
  Result<std::set<PackId>> pinned_packs();
  Result<bool> evict_pack(PackId pack, UnreapedContent& open);
  Result<bool> is_needed_by_open(const PackToc& toc, UnreapedContent& open);
  Result<MirrorOutcome> take(const WriterLock& lock, std::span<const MirrorChange> changes, std::uint64_t revision);
  Status keep_revision(const WriterLock& lock, std::uint64_t revision);
  Result<Events> adopt_all(Txn& txn, std::span<const Adoption> versions, std::span<const VersionContent> contents);
  Result<Digest> manifest_of(const Adoption& adoption);
  Result<std::vector<VersionId>> own_versions(Txn& txn) const;  // live versions of this node
  Result<bool> is_intact(const ContentId& id, const BlobPlace& place);

  const StoreInfo info_;
  const Fd writes_;  // daemon.lock, locked by each process that writes
  const std::unique_ptr<StoreParts> owned_;
  StoreParts& parts_;
  Promotions promotions_{parts_};
  PreparedPublishes prepared_{parts_, promotions_};
  Publisher publisher_{parts_, prepared_};
  StoreMemory memory_{parts_};
  Collector collector_{parts_, promotions_};
};

}  // namespace weft
