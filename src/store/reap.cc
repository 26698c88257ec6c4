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
      WEFT_TRY(Txn txn, parts_.index.read());
      WEFT_TRY(const std::vector<VersionId> noted_now, noted(txn, kGivingBack, from, 1));
      if (noted_now.empty()) return {};
      WEFT_TRY(version, need_row<VersionRow>(txn, Table::versions, key_of(noted_now.front())));
      WEFT_TRY(local, need_row<LocalRow>(txn, Table::locals, key_of(version.id)));
    }
    WEFT_TRY(const VersionContent content, parts_.contents.of(version.manifest));
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
    if (progress.cancelled()) return Error{Errc::cancelled, fmt::format("{}: gc stopped", parts_.path)};
    WEFT_TRY(const WriterLock lock, parts_.index.lock());
    Status written = parts_.index.write(lock, [&](Txn& txn) -> Status {
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
  WEFT_TRY(const WriterLock lock, parts_.index.lock());
  Released released;
  Status written = parts_.index.write(lock, [&](Txn& txn) -> Status {
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
    if (!parts_.reliances.is_needed(manifest)) WEFT_CHECK(parts_.manifests.remove(manifest));
  return {};
}

// Reaps one batch of these versions. Returns the id from which the next batch continues.
Result<VersionId> StoreImpl::reap_some(std::span<const VersionId> versions, OpenVersions::Claims& claims,
                                       GcReport& report) {
  WEFT_TRY(const WriterLock lock, parts_.index.lock());
  std::vector<bool> claimed;
  for (const VersionId version : versions) {
    WEFT_TRY(const bool mine, claims.claim(version));
    claimed.push_back(mine);
  }
  Released released;
  std::size_t done = 0;
  Status written = parts_.index.write(lock, [&](Txn& txn) -> Status {
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
    WEFT_TRY(const bool open, parts_.open_versions->is_open(version));
    ++(open ? report.versions_open : report.versions_reaped);
  }
  return versions.back() + 1;
}

// Reaps the removed versions that are not open.
Status StoreImpl::reap(const GcOptions& options, Progress& progress, GcReport& report) {
  WEFT_TRY(OpenVersions::Claims claims, parts_.open_versions->begin_claims());
  if (!options.dry_run) WEFT_CHECK(reap_noted(claims, progress, report));
  for (VersionId from = 0;;) {
    WEFT_TRY(const std::vector<VersionId> versions, some_unreaped(parts_.index.env(), from));
    if (versions.empty()) return {};
    WEFT_TRY(from, options.dry_run ? count_reapable(versions, report) : reap_some(versions, claims, report));
  }
}

// Returns those of these manifests that no version needs. Without the writer lock the result is only a guess: a publish
// places its manifest under that lock and commits before it releases the lock.
Result<std::vector<Digest>> StoreImpl::unneeded(std::span<const Digest> manifests) {
  std::vector<Digest> unneeded;
  RenewedTxn now(parts_.index.env());
  for (const Digest& manifest : manifests) {
    WEFT_TRY(Txn * txn, now.get());
    WEFT_TRY(const std::optional<Bytes> needed, txn->get(Table::manifests, digest_key(manifest)));
    if (needed || parts_.reliances.is_needed(manifest) || parts_.is_left_young(parts_.manifests.path_of(manifest)))
      continue;
    unneeded.push_back(manifest);
  }
  return unneeded;
}

// Removes manifests of publishes that failed or died before their commit.
Status StoreImpl::remove_orphans(const GcOptions& options, GcReport& report) {
  {
    WEFT_TRY(const WriterLock lock, parts_.index.lock());
    WEFT_TRY(const std::uint64_t temporaries, parts_.manifests.remove_temporaries(options.dry_run));
    report.stale_temporaries += temporaries;
  }
  WEFT_TRY(const std::vector<Digest> all, parts_.manifests.list());
  WEFT_TRY(const std::vector<Digest> likely, unneeded(all));
  for (std::size_t at = 0; at < likely.size(); at += limits::kBatchItems) {
    WEFT_TRY(const WriterLock lock, parts_.index.lock());
    const auto batch = std::span(likely).subspan(at, std::min(limits::kBatchItems, likely.size() - at));
    WEFT_TRY(const std::vector<Digest> orphans, unneeded(batch));
    report.stale_temporaries += orphans.size();
    if (options.dry_run) continue;
    for (const Digest& manifest : orphans) WEFT_CHECK(parts_.manifests.remove(manifest));
  }
  return {};
}

Status StoreImpl::check_collectable(const GcOptions& options) {
  WEFT_TRY(WriterLock lock, parts_.index.lock());
  WEFT_TRY(Txn txn, parts_.index.read());
  WEFT_TRY(Counters counters, get_counters(txn));
  if (parts_.cluster.joined() &&
      (options.registry_revision == 0 || counters.registry_revision < options.registry_revision))
    return Error{Errc::busy, fmt::format("{}: expected all of the registry up to revision {}, got it up to {}",
                                         parts_.path, options.registry_revision, counters.registry_revision)};
  return check_judgeable(txn, parts_.cluster);
}

// True if gc has to look at all packs. A dead process may have left packs that the index does not know. It also leaves
// temporary files, unless the machine stopped. The next gc walks too if this walk is interrupted.
Result<bool> StoreImpl::begin_walk(const GcOptions& options) {
  WEFT_TRY(const std::uint64_t stale, clear_temporaries(parts_.path, true));
  bool walked = false;
  {
    WEFT_TRY(Txn txn, parts_.index.read());
    WEFT_TRY(walked, has_walked(txn, this_boot()));
  }
  if (walked && stale == 0 && !options.all && (walked_ || !parts_.cluster.joined())) return false;
  if (options.dry_run || !walked) return true;
  WEFT_CHECK(end_walk(0));
  return true;
}

Status StoreImpl::end_walk(std::uint64_t boot) {
  WEFT_TRY(const WriterLock lock, parts_.index.lock());
  return parts_.index.write(lock, [boot](Txn& txn) -> Status {
    WEFT_CHECK(note_walked(txn, boot));
    return bump_sequence(txn);
  });
}

Status StoreImpl::collect(const GcOptions& options, Progress& progress, GcReport& report) {
  WEFT_CHECK(check_collectable(options));
  WEFT_TRY(const bool walk, begin_walk(options));
  progress.phase("reaping removed versions");
  if (!options.dry_run) WEFT_CHECK(give_up_taking(parts_, progress));
  WEFT_CHECK(reap(options, progress, report));
  WEFT_CHECK(remove_orphans(options, report));
  if (!options.dry_run) WEFT_CHECK(pack_manifests(progress));
  if (!options.dry_run) WEFT_CHECK(promotions_.undo_unneeded(walk));
  CollectInput input{options, walk, parts_.reliances.packs()};
  // A dry run has reaped nothing. It counts content of removed versions as dead unless they are open.
  const bool only_open = options.dry_run;
  input.content_of = [this, only_open](VersionId version) {
    return only_open ? parts_.extents_of_open(version) : parts_.extents_of(version);
  };
  input.is_relied_on = [this](const PackToc& toc) {
    return parts_.reliances.is_needed(toc.pack) ||
           (!toc.cached && parts_.is_left_young(parts_.packs.toc_file(toc.pack)));
  };
  WEFT_CHECK(collect_packs(parts_.packs, parts_.blobs, input, progress, report));
  if (!walk || options.dry_run) return {};
  walked_ = true;
  return end_walk(this_boot());
}

// On a full disk, gc starts again with the spare space, since each of its steps may need some. Afterwards the spare
// space is allocated again.
Result<GcReport> StoreImpl::gc(const GcOptions& options, Progress& progress) {
  WEFT_CHECK(parts_.check_writable());
  WEFT_TRY(Fd collector, lock_collector(parts_.path, LockKind::exclusive, parts_.options.patience));
  GcReport report;
  Status status = collect(options, progress, report);
  if (!status.ok() && status.error().code == Errc::no_space && release_spare(parts_.path))
    status = collect(options, progress, report);
  if (!options.dry_run) make_spare(parts_.path);
  WEFT_CHECK(std::move(status));
  return report;
}

}  // namespace weft
