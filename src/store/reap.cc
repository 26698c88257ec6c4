// gc: removed versions give back what only they need, once nobody uses them; then packs are collected.
#include <set>

#include <fmt/core.h>

#include "store/file_ops.h"
#include "store/notes.h"
#include "store/rebuild.h"
#include "store/spare.h"
#include "store/store_impl.h"

namespace weft {
namespace {

Status release_view(Txn& txn, Ino ino) {
  WEFT_TRY(std::optional<InodeRow> inode, find_row<InodeRow>(txn, Table::inodes, key_of(ino)));
  if (!inode) return {};  // of a version whose content could not be read
  std::string key = view_key(inode->view);
  WEFT_TRY(ViewRow view, need_row<ViewRow>(txn, Table::views, key));
  if (view.versions > 1) {
    --view.versions;
    return put(txn, Table::views, key, view);
  }
  WEFT_CHECK(txn.erase(Table::views, key));
  return txn.erase(Table::inodes, key_of(ino));
}

// Returns whether no version needs the manifest any more.
Result<bool> release_manifest(Txn& txn, const Digest& manifest) {
  std::string key = digest_key(manifest);
  WEFT_TRY(NumberRow count, need_row<NumberRow>(txn, Table::manifests, key));
  if (count.value > 1) {
    --count.value;
    WEFT_CHECK(put(txn, Table::manifests, key, count));
    return false;
  }
  WEFT_CHECK(txn.erase(Table::manifests, key));
  return true;
}

Result<bool> release_version(Txn& txn, const VersionRow& version) {
  WEFT_TRY(LocalRow local, need_row<LocalRow>(txn, Table::locals, key_of(version.id)));
  for (Ino ino : std::set<Ino>(local.view_inos.begin(), local.view_inos.end())) WEFT_CHECK(release_view(txn, ino));
  WEFT_CHECK(txn.erase(Table::inodes, key_of(local.ino_base)));
  WEFT_CHECK(txn.erase(Table::locals, key_of(version.id)));
  WEFT_CHECK(erase_note(txn, kUnreaped, version.id));
  WEFT_CHECK(bump_sequence(txn));
  return release_manifest(txn, version.manifest);
}

}  // namespace

// To gc, what removed versions that it has not reaped need is held: each may be open. One that is removed while gc runs
// is among them as soon as its blobs have no other holder.
class StoreImpl::GcIndex final : public IndexAccess {
 public:
  // A gc that changes nothing reaps nothing: to it, versions that are not open are reaped.
  GcIndex(StoreImpl& store, bool dry_run) : store_(store), unreaped_(store.unreaped(dry_run)) {}
  Result<std::unique_ptr<BlobIndex>> read() override { return store_.read(keep_); }
  Result<std::unique_ptr<BlobWriter>> write() override { return store_.write(keep_); }

 private:
  StoreImpl& store_;
  Unreaped unreaped_;
  const Keep keep_ = [this](Txn& txn) { return unreaped_.blobs(txn); };
};

Unreaped StoreImpl::unreaped(bool only_open) {
  Unreaped::Counts counts;
  if (only_open) counts = [this](VersionId version) { return open_versions_->is_open(version); };
  return {[this](const Digest& manifest) { return content_of(manifest); }, std::move(counts)};
}

// Returns whether it was reaped; not while somebody has it open.
Result<bool> StoreImpl::reap_version(const VersionRow& version, OpenVersions::Claims& claims) {
  WEFT_TRY(WriterLock lock, lock_writer());  // first: other writers wait for manifests while they have it
  WEFT_TRY(const bool claimed, claims.claim(version.id));
  if (!claimed) return false;
  auto in_use = manifests_.lock_exclusive(version.manifest);
  if (!in_use.ok() && in_use.error().code == Errc::busy) return false;
  if (!in_use.ok() && in_use.error().code != Errc::not_found) return std::move(in_use).error();
  bool last = false;
  WEFT_CHECK(env_->write(lock, [&](Txn& txn) -> Status {
    WEFT_TRY(last, release_version(txn, version));
    return {};
  }));
  if (last) WEFT_CHECK(manifests_.remove(version.manifest));
  return true;
}

Status StoreImpl::reap(const GcOptions& options, GcReport& report) {
  WEFT_TRY(std::vector<VersionRow> versions, ([this]() -> Result<std::vector<VersionRow>> {
             WEFT_TRY(Txn txn, env_->read());
             return unreaped_versions(txn);
           })());
  WEFT_TRY(OpenVersions::Claims claims, open_versions_->begin_claims());
  for (const VersionRow& version : versions) {
    bool reaped = true;
    if (options.dry_run) {
      WEFT_TRY(const bool open, open_versions_->is_open(version.id));
      reaped = !open;
    } else {
      WEFT_TRY(reaped, reap_version(version, claims));
    }
    ++(reaped ? report.versions_reaped : report.versions_open);
  }
  return {};
}

// Manifests that no version needs: of publishes that died before their commit.
Status StoreImpl::remove_orphans(const GcOptions& options, GcReport& report) {
  WEFT_TRY(WriterLock lock, lock_writer());
  WEFT_TRY(std::uint64_t temporaries, manifests_.remove_temporaries(options.dry_run));
  report.stale_temporaries += temporaries;
  WEFT_TRY(std::vector<Digest> manifests, manifests_.list());
  WEFT_TRY(Txn txn, env_->read());
  for (const Digest& manifest : manifests) {
    WEFT_TRY(std::optional<Bytes> needed, txn.get(Table::manifests, digest_key(manifest)));
    if (needed || (cluster() && is_young(manifests_.path_of(manifest)))) continue;
    if (!manifests_.lock_exclusive(manifest).ok()) continue;
    ++report.stale_temporaries;
    if (!options.dry_run) WEFT_CHECK(manifests_.remove(manifest));
  }
  return {};
}

// In a cluster every removal that this state knows came after all that was published before it, so that what these
// versions need is held here, as soon as none of them is bare.
Status StoreImpl::check_judgeable(Txn& txn) {
  WEFT_TRY(std::vector<VersionId> incomplete, noted(txn, kIncomplete, 0, 1));
  if (incomplete.empty()) return {};
  if (!cluster())
    return Error{Errc::corrupt,
                 fmt::format("{}: manifests of live versions are missing, so gc cannot tell what they need; "
                             "`weft fsck` names them, restore or `weft rm` them",
                             path_)};
  WEFT_TRY(VersionRow version, need_row<VersionRow>(txn, Table::versions, key_of(incomplete.front())));
  return Error{Errc::busy, fmt::format("{}: manifests of live versions are not here yet, so gc cannot tell what they "
                                       "need: the first is that of {}@{}",
                                       path_, version.model_name, version.number)};
}

Status StoreImpl::check_collectable(const GcOptions& options) {
  WEFT_TRY(WriterLock lock, lock_writer());
  WEFT_TRY(Txn txn, env_->read());
  WEFT_TRY(Counters counters, get_counters(txn));
  if (cluster() && (options.registry_revision == 0 || counters.registry_revision < options.registry_revision))
    return Error{Errc::busy, fmt::format("{}: expected all of the registry up to revision {}, got it up to {}", path_,
                                         options.registry_revision, counters.registry_revision)};
  return check_judgeable(txn);
}

Status StoreImpl::collect(const GcOptions& options, Progress& progress, GcReport& report) {
  progress.phase("reaping removed versions");
  WEFT_CHECK(reap(options, report));
  WEFT_CHECK(remove_orphans(options, report));
  if (!options.dry_run) WEFT_CHECK(give_back_unneeded());
  GcIndex index(*this, options.dry_run);
  return collect_packs(packs_, path_, index, options, progress, report);
}

// On a full disk it begins again with the room that is kept for it: every step of a gc may be the last.
Result<GcReport> StoreImpl::gc(const GcOptions& options, Progress& progress) {
  if (!options_.write) return Error{Errc::read_only, fmt::format("{}: opened for reading", path_)};
  WEFT_TRY(Fd collector, lock_collector(path_, LockKind::exclusive, options_.patience));
  WEFT_CHECK(check_collectable(options));
  GcReport report;
  Status status = collect(options, progress, report);
  if (!status.ok() && status.error().code == Errc::no_space && release_spare(path_))
    status = collect(options, progress, report);
  WEFT_CHECK(std::move(status));
  if (!options.dry_run) make_spare(path_);
  return report;
}

}  // namespace weft
