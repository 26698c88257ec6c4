// A store: owns its parts and joins its rooms. Tests use it directly: with hooks between the steps of a commit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "os/safe_path.h"
#include "os/sys.h"
#include "store/checking/checking.h"
#include "store/cluster/store_cache.h"
#include "store/cluster/store_ledger.h"
#include "store/cluster/store_mirror.h"
#include "store/collecting/collector.h"
#include "store/parts/parts.h"
#include "store/publishing/memory_versions.h"
#include "store/publishing/publisher.h"
#include "store/publishing/undeletes.h"
#include "store/reading/queries.h"
#include "weft/bytes/pack.h"
#include "weft/model/version_content.h"
#include "weft/store/cluster_store.h"
#include "weft/store/commits.h"
#include "weft/store/fsck.h"
#include "weft/store/gc.h"
#include "weft/store/publish.h"
#include "weft/store/snapshot.h"
#include "weft/store/store.h"

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
  Result<std::unique_ptr<Snapshot>> snapshot() override { return open_snapshot(parts_); }
  Result<IndexState> state() override { return parts_.index.env().state(); }
  Result<StoreCounts> counts() override { return count_store(parts_); }
  Result<std::uint64_t> open_removed() override { return count_open_removed(parts_); }
  Result<VersionId> keeper(const InodeRow& view) override { return keeper_of(parts_, view); }
  Result<CommitBatch> commits(std::uint64_t from) override { return commits_from(parts_, from); }
  Result<std::unique_ptr<CommitWatch>> watch_commits() override { return weft::watch_commits(parts_); }
  Result<OpenPlace> open_blob(const ContentId& id) override { return parts_.packs.open_blob(id); }
  Result<OpenPlace> open_place(const ContentId& id, const BlobPlace& place) override {
    return parts_.packs.open_place(id, place);
  }
  Result<std::shared_ptr<const ManifestReader>> open_manifest(const Digest& digest) override {
    return parts_.manifests.open(digest);
  }
  Result<VersionHold> hold_version(VersionId version) override { return weft::hold_version(parts_, version); }
  Result<std::vector<VersionHold>> take_over_holds(std::span<const VersionId> versions) override {
    return parts_.open_versions->take_over(versions);
  }
  Result<std::unique_ptr<Import>> begin_import(Durability durability) override {
    return weft::begin_import(parts_, durability);
  }
  Status set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number,
                 const Author& by = {}) override {
    return weft::set_tag(parts_, model, tag, number, by);
  }
  Result<std::size_t> remove_versions(std::span<const VersionName> versions, Tagged tagged,
                                      const Author& by = {}) override {
    return weft::remove_versions(parts_, versions, tagged, by);
  }
  Result<GcReport> gc(const GcOptions& options, Progress& progress) override {
    return weft::gc(parts_, options, progress);
  }
  Result<FsckReport> fsck(const FsckOptions& options, const ContentDecoder& decode, Progress& progress) override {
    return weft::fsck(parts_, options, decode, progress);
  }

  Result<std::unique_ptr<BlobRepair>> begin_repair() override { return weft::begin_repair(parts_); }
  Result<ScrubReport> scrub(const ScrubOptions& options, Progress& progress) override {
    return weft::scrub(parts_, options, progress);
  }

  Status describe(std::string_view model, std::uint64_t number, const DescriptionChange& change) override {
    return weft::describe(parts_, model, number, change);
  }
  Status protect_tag(std::string_view model, std::string_view tag, bool on, const Author& by = {}) override {
    return weft::protect_tag(parts_, model, tag, on, by);
  }
  Status rename_model(std::string_view model, std::string_view to, const Author& by = {}) override {
    return weft::rename_model(parts_, model, to, by);
  }
  Result<UndeletedVersion> undelete(std::string_view model, std::uint64_t number, const Author& by = {}) override {
    return weft::undelete(parts_, model, number, by);
  }
  Status pin(std::string_view model, std::uint64_t number, bool pinned) override {
    return weft::pin(parts_, model, number, pinned);
  }

  RegistryMirror& mirror() override { return mirror_; }
  FetchedCache& cache() override { return cache_; }
  MemoryVersions& memory() override { return memory_; }
  OriginLedger& ledger() override { return ledger_; }

  StoreParts& parts() { return parts_; }
  // Deletes the files of an unused store: no commit was ever made, and no other process has it open. False: the store
  // stays.
  Result<bool> remove_unused();

 private:
  StoreImpl(StoreInfo info, std::unique_ptr<StoreParts> parts, Fd writes)
      : info_(std::move(info)), writes_(std::move(writes)), owned_(std::move(parts)), parts_(*owned_) {}
  static Result<std::unique_ptr<StoreImpl>> open_held(const SafePath& path, const OpenOptions& options,
                                                      CommitHooks hooks, Fd writes);

  const StoreInfo info_;
  const Fd writes_;  // daemon.lock, locked by each process that writes
  const std::unique_ptr<StoreParts> owned_;
  StoreParts& parts_;
  StoreMemory memory_{parts_};
  StoreMirror mirror_{parts_};
  StoreCache cache_{parts_};
  StoreLedger ledger_{parts_};
};

}  // namespace weft
