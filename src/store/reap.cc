// gc: reaps removed versions that are not open, which frees the content that only they need. Then it collects the
// packs.
#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "base/limits.h"
#include "catalog/giving_back.h"
#include "catalog/layout.h"
#include "diskformat/hash.h"
#include "diskformat/toc.h"
#include "index/gc_queue.h"
#include "index/manifests.h"
#include "index/pages.h"
#include "os/file_ops.h"
#include "packs/assembled.h"
#include "repair/rebuild.h"
#include "store/store_impl.h"

namespace weft {

namespace {

// Returns a hash of the boot id; 0 if the kernel does not tell.
std::uint64_t this_boot() {
  const std::string boot = boot_id();
  return boot.empty() ? 0 : xxh3_64(std::as_bytes(std::span(boot)));
}

// The results of one batch.
struct Released {
  std::size_t versions = 0;
  std::size_t rows = 0;
  std::vector<Digest> manifests;  // manifests that lost their last version
};

// Erases the rows of a version, all but the inodes of its tensors.
Status forget_version(Txn& txn, const VersionRow& version, const LocalRow& local, Released& released) {
  WEFT_CHECK(txn.erase(Table::inodes, key_of(local.ino_base)));
  WEFT_CHECK(txn.erase(Table::locals, key_of(version.id)));
  WEFT_CHECK(erase_note(txn, kUnreaped, version.id));
  WEFT_CHECK(bump_sequence(txn));
  ++released.versions;
  WEFT_TRY(const bool last, release_manifest(txn, version.manifest));
  if (last) released.manifests.push_back(version.manifest);
  return {};
}

Status release_version(Txn& txn, VersionId id, Released& released) {
  WEFT_TRY(const bool unreaped, has_note(txn, kUnreaped, id));
  WEFT_TRY(const auto giving_back, steps_given_back(txn, id));
  if (!unreaped || giving_back) return {};  // reap_noted() releases it, maybe in a later gc
  WEFT_TRY(const VersionRow version, need_row<VersionRow>(txn, Table::versions, key_of(id)));
  WEFT_TRY(const LocalRow local, need_row<LocalRow>(txn, Table::locals, key_of(version.id)));
  released.rows += 2 * local.view_inos.size() + 1;
  for (Ino ino : std::set<Ino>(local.view_inos.begin(), local.view_inos.end())) WEFT_CHECK(release_view(txn, ino));
  return forget_version(txn, version, local, released);
}

Result<std::vector<VersionId>> some_unreaped(Env& env, VersionId from) {
  WEFT_TRY(Txn txn, env.read());
  return noted(txn, kUnreaped, from, limits::kBatchItems);
}

}  // namespace

// Reaps large versions in batches: first the content that they hold, then, if they are not open, their inodes.
Status StoreImpl::reap_noted(OpenVersions::Claims& claims, Progress& progress, GcReport& report) {
  for (VersionId from = 0;;) {
    VersionRow version;
    LocalRow local;
    {
      WEFT_TRY(Txn txn, env_->read());
      WEFT_TRY(const std::vector<VersionId> noted_now, noted(txn, kGivingBack, from, 1));
      if (noted_now.empty()) return {};
      WEFT_TRY(version, need_row<VersionRow>(txn, Table::versions, key_of(noted_now.front())));
      WEFT_TRY(local, need_row<LocalRow>(txn, Table::locals, key_of(version.id)));
    }
    WEFT_TRY(const VersionContent content, content_of(version.manifest));
    const GivingBack giving(version.id, local, content);
    WEFT_CHECK(give_back(giving, version.id, giving.held_steps(), progress));
    WEFT_TRY(const bool claimed, claims.claim(version.id));
    if (claimed) WEFT_CHECK(give_back(giving, version.id, giving.steps(), progress));
    if (claimed) WEFT_CHECK(forget_noted(version, local, report));
    from = version.id + 1;
  }
}

Status StoreImpl::give_back(const GivingBack& giving, VersionId version, std::uint64_t end, Progress& progress) {
  for (std::uint64_t at = 0; at < end;) {
    if (progress.cancelled()) return Error{Errc::cancelled, fmt::format("{}: gc stopped", path_)};
    WEFT_TRY(const WriterLock lock, lock_writer());
    Status written = env_->write(lock, [&](Txn& txn) -> Status {
      WEFT_TRY(const auto from, steps_given_back(txn, version));
      at = std::min(from.value_or(end) + limits::kBatchRows, end);
      if (!from || *from >= end) return {};
      WEFT_CHECK(giving.take(txn, *from, at));
      WEFT_CHECK(note_given_back(txn, version, at));
      return bump_sequence(txn);
    });
    WEFT_CHECK(std::move(written));
  }
  return {};
}

Status StoreImpl::forget_noted(const VersionRow& version, const LocalRow& local, GcReport& report) {
  WEFT_TRY(const WriterLock lock, lock_writer());
  Released released;
  Status written = env_->write(lock, [&](Txn& txn) -> Status {
    released = {};
    WEFT_CHECK(erase_note(txn, kGivingBack, version.id));
    return forget_version(txn, version, local, released);
  });
  WEFT_CHECK(std::move(written));
  report.versions_reaped += released.versions;
  return remove_released(released.manifests);
}

Status StoreImpl::remove_released(std::span<const Digest> manifests) const {
  for (const Digest& manifest : manifests)
    if (!reliances_.is_needed(manifest)) WEFT_CHECK(manifests_.remove(manifest));
  return {};
}

// Reaps one batch of these versions. Returns the id from which the next batch continues.
Result<VersionId> StoreImpl::reap_some(std::span<const VersionId> versions, OpenVersions::Claims& claims,
                                       GcReport& report) {
  WEFT_TRY(const WriterLock lock, lock_writer());
  std::vector<bool> claimed;
  for (const VersionId version : versions) {
    WEFT_TRY(const bool mine, claims.claim(version));
    claimed.push_back(mine);
  }
  Released released;
  std::size_t done = 0;
  Status written = env_->write(lock, [&](Txn& txn) -> Status {
    released = {};
    for (done = 0; done < versions.size() && released.rows < limits::kBatchRows; ++done)
      if (claimed[done]) WEFT_CHECK(release_version(txn, versions[done], released));
    return {};
  });
  WEFT_CHECK(std::move(written));
  WEFT_CHECK(remove_released(released.manifests));
  report.versions_reaped += released.versions;
  report.versions_open += static_cast<std::uint64_t>(std::count(claimed.begin(), claimed.begin() + done, false));
  return versions[done - 1] + 1;
}

Result<VersionId> StoreImpl::count_reapable(std::span<const VersionId> versions, GcReport& report) const {
  for (const VersionId version : versions) {
    WEFT_TRY(const bool open, open_versions_->is_open(version));
    ++(open ? report.versions_open : report.versions_reaped);
  }
  return versions.back() + 1;
}

// Reaps the removed versions that are not open.
Status StoreImpl::reap(const GcOptions& options, Progress& progress, GcReport& report) {
  WEFT_TRY(OpenVersions::Claims claims, open_versions_->begin_claims());
  if (!options.dry_run) WEFT_CHECK(reap_noted(claims, progress, report));
  for (VersionId from = 0;;) {
    WEFT_TRY(const std::vector<VersionId> versions, some_unreaped(*env_, from));
    if (versions.empty()) return {};
    WEFT_TRY(from, options.dry_run ? count_reapable(versions, report) : reap_some(versions, claims, report));
  }
}

// Returns those of these manifests that no version needs. Without the writer lock the result is only a guess: a publish
// places its manifest under that lock and commits before it releases the lock.
Result<std::vector<Digest>> StoreImpl::unneeded(std::span<const Digest> manifests) {
  std::vector<Digest> unneeded;
  RenewedTxn now(*env_);
  for (const Digest& manifest : manifests) {
    WEFT_TRY(Txn * txn, now.get());
    WEFT_TRY(const std::optional<Bytes> needed, txn->get(Table::manifests, digest_key(manifest)));
    if (needed || reliances_.is_needed(manifest) || is_left_young(manifests_.path_of(manifest))) continue;
    unneeded.push_back(manifest);
  }
  return unneeded;
}

// Removes manifests of publishes that failed or died before their commit.
Status StoreImpl::remove_orphans(const GcOptions& options, GcReport& report) {
  {
    WEFT_TRY(const WriterLock lock, lock_writer());
    WEFT_TRY(const std::uint64_t temporaries, manifests_.remove_temporaries(options.dry_run));
    report.stale_temporaries += temporaries;
  }
  WEFT_TRY(const std::vector<Digest> all, manifests_.list());
  WEFT_TRY(const std::vector<Digest> likely, unneeded(all));
  for (std::size_t at = 0; at < likely.size(); at += limits::kBatchItems) {
    WEFT_TRY(const WriterLock lock, lock_writer());
    const auto batch = std::span(likely).subspan(at, std::min(limits::kBatchItems, likely.size() - at));
    WEFT_TRY(const std::vector<Digest> orphans, unneeded(batch));
    report.stale_temporaries += orphans.size();
    if (options.dry_run) continue;
    for (const Digest& manifest : orphans) WEFT_CHECK(manifests_.remove(manifest));
  }
  return {};
}

// gc must know the content of all live versions. In a cluster the mirrored revision includes every version that was
// published before a mirrored removal. So their content is held here once none of them is bare.
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

Result<std::vector<ContentId>> StoreImpl::extents_of(VersionId id) {
  Digest manifest;
  {
    WEFT_TRY(Txn txn, env_->read());
    WEFT_TRY(const VersionRow version, need_row<VersionRow>(txn, Table::versions, key_of(id)));
    manifest = version.manifest;
  }
  WEFT_TRY(const VersionContent content, content_of(manifest));
  std::vector<ContentId> extents;
  for (const VersionContent::FileContent& file : content.files)
    for (const Extent& extent : file.extents) extents.push_back(extent.id);
  return extents;
}

// Returns the version's blobs while a reader has it open, else nothing.
Result<std::vector<ContentId>> StoreImpl::extents_of_open(VersionId id) {
  WEFT_TRY(const bool open, open_versions_->is_open(id));
  return open ? extents_of(id) : Result<std::vector<ContentId>>(std::vector<ContentId>());
}

// True if gc has to look at all packs. A dead process may have left packs that the index does not know. It also leaves
// temporary files, unless the machine stopped. The next gc walks too if this walk is interrupted.
Result<bool> StoreImpl::begin_walk(const GcOptions& options) {
  WEFT_TRY(const std::uint64_t stale, clear_temporaries(path_, true));
  bool walked = false;
  {
    WEFT_TRY(Txn txn, env_->read());
    WEFT_TRY(walked, has_walked(txn, this_boot()));
  }
  if (walked && stale == 0 && !options.all && (walked_ || !cluster())) return false;
  if (options.dry_run || !walked) return true;
  WEFT_CHECK(end_walk(0));
  return true;
}

Status StoreImpl::end_walk(std::uint64_t boot) {
  WEFT_TRY(const WriterLock lock, lock_writer());
  return env_->write(lock, [boot](Txn& txn) -> Status {
    WEFT_CHECK(note_walked(txn, boot));
    return bump_sequence(txn);
  });
}

Status StoreImpl::collect(const GcOptions& options, Progress& progress, GcReport& report) {
  WEFT_CHECK(check_collectable(options));
  WEFT_TRY(const bool walk, begin_walk(options));
  progress.phase("reaping removed versions");
  if (!options.dry_run) WEFT_CHECK(give_up_taking(progress));
  WEFT_CHECK(reap(options, progress, report));
  WEFT_CHECK(remove_orphans(options, report));
  if (!options.dry_run) WEFT_CHECK(pack_manifests(progress));
  if (!options.dry_run) WEFT_CHECK(give_back_unneeded(walk));
  CollectInput input{options, walk, reliances_.packs()};
  // A dry run has reaped nothing. It counts content of removed versions as dead unless they are open.
  const bool only_open = options.dry_run;
  input.content_of = [this, only_open](VersionId version) {
    return only_open ? extents_of_open(version) : extents_of(version);
  };
  input.is_relied_on = [this](const PackToc& toc) {
    return reliances_.is_needed(toc.pack) || (!toc.cached && is_left_young(packs_.toc_file(toc.pack)));
  };
  WEFT_CHECK(collect_packs(packs_, *this, input, progress, report));
  if (!walk || options.dry_run) return {};
  walked_ = true;
  return end_walk(this_boot());
}

// On a full disk, gc starts again with the spare space, since each of its steps may need some. Afterwards the spare
// space is allocated again.
Result<GcReport> StoreImpl::gc(const GcOptions& options, Progress& progress) {
  if (!options_.write) return Error{Errc::read_only, fmt::format("{}: opened for reading", path_)};
  WEFT_TRY(Fd collector, lock_collector(path_, LockKind::exclusive, options_.patience));
  GcReport report;
  Status status = collect(options, progress, report);
  if (!status.ok() && status.error().code == Errc::no_space && release_spare(path_))
    status = collect(options, progress, report);
  if (!options.dry_run) make_spare(path_);
  WEFT_CHECK(std::move(status));
  return report;
}

}  // namespace weft
