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

#include "catalog/giving_back.h"
#include "catalog/plan.h"
#include "catalog/taking.h"
#include "packs/collect.h"
#include "store/in_memory.h"
#include "store/parts/parts.h"
#include "store/prepare.h"
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

// A manifest that a publish has made durable under a temporary name.
struct SealedManifest {
  Digest digest;
  StagedManifest staged;
};

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
  Result<std::unique_ptr<Import>> begin_import(Durability durability) override;
  Status set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number) override;
  Result<std::size_t> remove_versions(std::span<const VersionName> versions) override;
  Result<GcReport> gc(const GcOptions& options, Progress& progress) override;
  Result<FsckReport> fsck(const FsckOptions& options, const ContentDecoder& decode, Progress& progress) override;

  Result<std::unique_ptr<BlobRepair>> begin_repair() override;
  Result<ScrubReport> scrub(const ScrubOptions& options, Progress& progress) override;

  Status join(const ClusterIdentity& identity) override;
  Result<MirrorOutcome> mirror(std::span<const MirrorChange> changes, std::uint64_t revision) override;
  Status adopt(std::span<const Adoption> versions) override;
  Result<std::unique_ptr<FetchPack>> fetch_pack(std::uint64_t size) override;
  Result<std::unique_ptr<FetchPack>> resume_fetch(PackId pack) override;
  Result<std::vector<CachedPack>> cached_packs() override;
  Result<EvictReport> evict(const EvictOptions& options) override;
  Result<std::vector<Digest>> chunks(const ContentId& id) override { return parts_.packs.chunks(id); }
  Result<bool> make_evictable(PackId pack) override;
  Status pin(std::string_view model, std::uint64_t number, bool pinned) override;
  Result<std::optional<ForgottenPlace>> forget_damaged(const ContentId& id) override;
  Status put_back(const ContentId& id, const BlobPlace& place) override;
  Result<MemoryState> settle_version(VersionId version, const FlushPace& pace) override;
  Result<std::uint64_t> unsynced_bytes(VersionId version) override;
  Status keep_version(std::string_view model, std::uint64_t number) override;
  Status lose_version(std::string_view model, std::uint64_t number, std::string_view why) override;
  Status saved(std::span<const VersionId> versions) override;
  Result<SaidBatch> said(std::uint64_t from) override;
  Result<std::string> origin() override;
  Status set_origin(const std::string& uuid) override;
  Result<std::uint64_t> told(std::string_view origin) override;
  Status set_told(std::string_view origin, std::uint64_t end) override;

  // Commits a sealed import.
  Result<PublishOutcome> publish(const PublishRequest& request, SealedManifest manifest, Importer& packs);
  // The same for blobs whose packs are already in packs/, durable and locked.
  Result<PublishOutcome> publish(const PublishRequest& request, std::span<const NewBlob> new_blobs);
  // Prepares a publish, up to the decision of the registry.
  Result<std::unique_ptr<PreparedPublish>> prepare(const PublishRequest& request, SealedManifest manifest,
                                                   std::unique_ptr<Importer> packs);
  // Makes the packs and the manifest of a publish durable under temporary names.
  Result<SealedManifest> seal(const GiveManifest& manifest, Importer& packs) const;
  // Removes the packs of a failed publish from packs/. gc removes its manifest, which another publish may need.
  void discard(std::span<const NewBlob> blobs);
  void give_back(const Promotion& promotion);
  void published(const Promotion& promotion);  // stays relied on for a while if the index lacks the version

  // Places the packs of a repair and points the index to their blobs. Calls `place` under the writer lock.
  Status commit_repair(std::span<const NewBlob> blobs, const std::function<Status()>& place);

  // Opens a store that is still being made: its directory is laid out, and the caller holds the maker's lock. For
  // writing.
  static Result<std::unique_ptr<StoreImpl>> open_unfinished(const SafePath& path, const OpenOptions& options);
  StoreParts& parts() { return parts_; }
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
  Result<MemoryUse> memory_use(const VersionRow& version, const VersionContent& content);
  Status forget_lost(PackId pack, std::span<const PackEntry> lost);
  Status settle_packs(const std::set<PackId>& packs, const FlushPace& pace);
  Status look_at_stopped(FsckReport& report);
  // Gives the sealed files their final names. The caller holds the writer lock, so a publish that gives up waiting for
  // the lock leaves nothing in place.
  Status place(SealedManifest manifest, Importer& packs) const;
  // The placed blobs of a publish, and the writer lock that protects them until the commit.
  struct Placed {
    std::optional<WriterLock> lock;  // empty only while a large publish lets others write
    std::span<const NewBlob> new_blobs;
    bool in_memory = false;
  };
  Result<PublishOutcome> try_publish(const PublishRequest& request, const Digest& manifest,
                                     const std::function<Result<Placed>()>& place);
  Result<PublishOutcome> commit_publish(const PublishRequest& request, const Digest& manifest,
                                        const std::function<Result<Placed>()>& place);
  // publish_parts.cc: large versions.
  Result<Fd> lock_for_taking();
  Result<std::optional<TakenContent>> take_content(const PublishRequest& request, const Digest& manifest,
                                                   Placed& placed, std::uint64_t& new_bytes);
  Status end_part(Placed& placed);
  Status give_up_taking(Progress& progress);
  Status give_up_left(Progress& progress);
  Result<std::string> left_taking();
  Result<WriterLock> lock_with_shared(Importer& packs);
  Kept kept() const { return parts_.cluster.joined() ? Kept::as_file : Kept::anywhere; }
  void foresee(const PublishRequest& request) const;
  Status replace_damaged(const WriterLock& lock, std::span<const NewBlob> new_blobs);
  Result<bool> relies_on_memory(Txn& txn, const PublishRequest& request);
  Status prepare_in_place(const PublishRequest& request, SealedManifest manifest, Importer& packs,
                          PreparedParts& parts);
  Status promote(const WriterLock& lock, const Promotion& promotion);
  Status make_cached(const WriterLock& lock, const std::set<PackId>& packs);
  Result<std::set<PackId>> promoted_in_vain(std::span<const PackId> packs);
  Status give_back_unneeded(bool walk);
  Status add_packs_of(VersionId id, std::set<PackId>& packs);
  Result<std::set<PackId>> pinned_packs();
  Result<bool> evict_pack(PackId pack, UnreapedContent& open);
  Result<bool> is_needed_by_open(const PackToc& toc, UnreapedContent& open);
  Result<MirrorOutcome> take(const WriterLock& lock, std::span<const MirrorChange> changes, std::uint64_t revision);
  Status keep_revision(const WriterLock& lock, std::uint64_t revision);
  Result<Events> adopt_all(Txn& txn, std::span<const Adoption> versions, std::span<const VersionContent> contents);
  Result<Digest> manifest_of(const Adoption& adoption);
  Result<std::vector<VersionId>> own_versions(Txn& txn) const;  // live versions of this node
  Status reap(const GcOptions& options, Progress& progress, GcReport& report);
  Status reap_noted(OpenVersions::Claims& claims, Progress& progress, GcReport& report);
  Status give_back(const GivingBack& giving, VersionId version, std::uint64_t end, Progress& progress);
  Status forget_noted(const VersionRow& version, const LocalRow& local, GcReport& report);
  Status remove_released(std::span<const Digest> manifests) const;
  Result<VersionId> reap_some(std::span<const VersionId> versions, OpenVersions::Claims& claims, GcReport& report);
  Result<VersionId> count_reapable(std::span<const VersionId> versions, GcReport& report) const;
  Result<std::vector<Digest>> unneeded(std::span<const Digest> manifests);
  Status check_collectable(const GcOptions& options);
  Result<bool> begin_walk(const GcOptions& options);
  Status end_walk(std::uint64_t boot);
  Status collect(const GcOptions& options, Progress& progress, GcReport& report);
  Status find_missing(FsckReport& report);
  Status find_missing_manifests(FsckReport& report);
  Result<bool> is_intact(const ContentId& id, const BlobPlace& place);
  Status check_index(const ContentDecoder& decode, Progress& progress, FsckReport& report);
  // pack_manifests.cc: moves manifests from files into packs.
  Status pack_manifests(Progress& progress);
  Result<std::vector<Digest>> loose_manifests();
  Status drop_packed_files(std::span<const Digest> manifests);
  Status pack_some(std::span<const Digest> manifests);
  Status remove_orphans(const GcOptions& options, GcReport& report);

  const StoreInfo info_;
  const Fd writes_;  // daemon.lock, locked by each process that writes
  const std::unique_ptr<StoreParts> owned_;
  StoreParts& parts_;
  bool walked_ = false;  // gc has looked at all packs since the store was opened. Only one gc runs
};

// Returns the ids of the packs that hold these blobs, without duplicates.
std::vector<PackId> pack_ids(std::span<const NewBlob> blobs);
Status check_request(const PublishRequest& request);  // Errc::invalid: a limit is exceeded

}  // namespace weft
