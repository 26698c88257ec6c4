#include "store/checking/checking.h"

#include <filesystem>
#include <set>

#include <fmt/core.h>

#include "catalog/cluster_files.h"
#include "catalog/layout.h"
#include "catalog/release.h"
#include "diskformat/pack_names.h"
#include "index/blobs.h"
#include "index/pages.h"
#include "index/scratch_index.h"
#include "os/sys.h"
#include "packs/assembled.h"
#include "packs/verify.h"
#include "repair/compare.h"
#include "repair/rebuild.h"
#include "store/publishing/large_publish.h"

namespace weft {
namespace {

Result<SafePath> scratch_parent(const SafePath& store_path, bool write) {
  if (write) return store_path / "index";
  std::error_code code;
  auto temporary = std::filesystem::temp_directory_path(code);
  WEFT_TRY(Beneath directory, Beneath::open(code ? "/tmp" : temporary.string()));
  return SafePath(std::move(directory));
}

bool has_local(Env& index, VersionId version) {
  auto txn = index.read();
  if (!txn.ok()) return false;
  auto local = find_row<LocalRow>(*txn, Table::locals, key_of(version));
  return local.ok() && local->has_value();
}

std::optional<FoundBlob> known_blob(Env& index, const ContentId& id) {
  auto txn = index.read();
  if (!txn.ok()) return std::nullopt;
  auto blob = find_blob(*txn, id);
  return blob.ok() ? std::move(*blob) : std::nullopt;
}

std::uint64_t steps_taken(Env& env, VersionId version) {
  auto txn = env.read();
  const auto steps =
      txn.ok() ? note_value(*txn, kReleasing, version) : Result<std::optional<std::uint64_t>>(txn.error());
  return steps.ok() ? steps->value_or(kAllHeld) : kAllHeld;
}

// Builds a second index from the journal and the packs, which follows the writers until both are compared. gc and
// rebuilds wait meanwhile, so no manifest is removed and no removed version is reaped.
Status check_index(StoreParts& parts, const ContentDecoder& decode, Progress& progress, FsckReport& report) {
  progress.phase("comparing the index");
  const auto lock = [&]() -> Result<WriterLock> {
    WEFT_TRY(WriterLock held, Env::lock_writer(parts.path / "index", parts.options.patience));
    if (parts.options.write) WEFT_CHECK(parts.index.catch_up(held));
    return held;
  };
  const auto counters = [&]() -> Result<Counters> {
    WEFT_TRY(Txn txn, parts.index.read());
    return get_counters(txn);
  };
  WEFT_CHECK(lock());
  WEFT_TRY(const SafePath parent, scratch_parent(parts.path, parts.options.write));
  WEFT_TRY(ScratchIndex scratch, ScratchIndex::make(parent));
  const Manifests manifests(parts.path, PackedManifests{parts.packs, scratch.env()});
  RebuildInput input{parts.path, parts.index.journal(), manifests, parts.packs, decode};
  WEFT_TRY(input.index, counters());
  input.unreaped = [&](VersionId version) { return has_local(parts.index.env(), version); };
  input.released = [&](VersionId version) { return steps_taken(parts.index.env(), version); };
  input.known = [&](const ContentId& id) { return known_blob(parts.index.env(), id); };
  if (parts.cluster.joined()) input.node = parts.cluster.identity()->node;
  FsckReport made;
  WEFT_TRY(const std::string left, left_attaching(parts));
  if (!left.empty()) made.problems.push_back(left);  // makes has_content() false
  WEFT_TRY(const auto rebuilder, Rebuilder::begin(scratch.env(), input, progress, made));
  auto filled = rebuilder->fill();
  Status status = filled.ok() ? Status{} : Status{std::move(filled).error()};
  const auto follow = [&]() -> Status {
    WEFT_TRY(const Counters now, counters());
    return rebuilder->follow(now.journal_end);
  };
  FsckReport compared;
  const auto has_content = [&made] { return made.problems.empty(); };
  if (status.ok())
    status =
        compare_indexes({parts.index.env(), scratch.env(), parts.packs, follow, lock, has_content, progress}, compared);
  report.versions += made.versions;
  for (const FsckReport* part : {&made, &compared})
    report.problems.insert(report.problems.end(), part->problems.begin(), part->problems.end());
  return status;
}

// Reports manifests whose pack is missing and that cannot be read from a file either.
Status find_missing_manifests(StoreParts& parts, FsckReport& report) {
  WEFT_TRY(const std::vector<PackId> there, parts.packs.list());
  const std::set<PackId> packs(there.begin(), there.end());
  std::vector<Digest> missing;
  WEFT_CHECK(visit_all(parts.index.env(), Table::manifests, {}, [&](Txn& txn, const Entry& entry) -> Status {
    WEFT_TRY(const auto row, row_from<ManifestRow>(txn, Table::manifests, entry.key, entry.value));
    if (row.packed() && !packs.contains(row.place.pack)) missing.push_back(digest_of(entry.key));
    return {};
  }));
  for (const Digest& digest : missing) {
    const auto manifest = parts.manifests.open(digest);
    if (!manifest.ok())
      report.problems.push_back(fmt::format("manifest {}: {}", to_hex(digest), manifest.error().message));
  }
  return {};
}

// For fsck, if the machine has stopped and the daemon has not run since.
Status check_stopped(StoreParts& parts, FsckReport& report) {
  if (!parts.cluster.joined()) return {};
  const auto alone = lock_against_daemon(parts.path);
  if (!alone.ok() && alone.error().code == Errc::busy) return {};  // the running daemon has flushed its commits
  WEFT_TRY(const WriterLock lock, Env::lock_writer(parts.path / "index", parts.options.patience));
  const auto lost = parts.index.lost_by_stop();
  if (lost.ok() && *lost != 0)
    report.problems.push_back(fmt::format(
        "{}: the machine stopped before the last {} bytes of its journal were written, and the index is ahead of it; "
        "weftd makes it anew when it starts, and the registry tells again what is missing",
        parts.path, *lost));
  return {};
}

}  // namespace

Status find_missing(StoreParts& parts, FsckReport& report) {
  WEFT_TRY(const std::vector<PackId> there, parts.packs.list());
  const std::set<PackId> packs(there.begin(), there.end());
  std::vector<DamagedBlob> missing;
  WEFT_CHECK(visit_all(parts.index.env(), Table::blobs, {}, [&](Txn& txn, const Entry& entry) -> Status {
    WEFT_TRY(const BlobRow blob, row_from<BlobRow>(txn, Table::blobs, entry.key, entry.value));
    if (!blob.absent() && !packs.contains(blob.place.pack)) missing.push_back({blob_id(entry.key), blob.place, ""});
    return {};
  }));
  for (DamagedBlob& blob : missing) {
    WEFT_TRY(const std::unique_ptr<BlobIndex> now, parts.blobs.read());
    WEFT_TRY(const std::optional<BlobPlace> place, now->find(blob.id));
    const SafePath path = pack_path(parts.path, blob.place.pack);
    if (place != blob.place || stat_file(path).ok()) continue;  // moved or evicted meanwhile
    WEFT_TRY(const bool held, now->is_held(blob.id));
    if (!held) continue;
    blob.what = fmt::format("{}: is missing, with blob {} of {} bytes", path, to_hex(blob.id.root), blob.id.length);
    report.problems.push_back(blob.what);
    report.damaged.push_back(std::move(blob));
  }
  return {};
}

Result<FsckReport> fsck(StoreParts& parts, const FsckOptions& options, const ContentDecoder& decode,
                        Progress& progress) {
  FsckReport report;
  if (options.rebuild) {
    WEFT_CHECK(parts.check_writable());
    WEFT_TRY(report, rebuild_store(parts.path, decode, {options.accept_loss, parts.options.patience}, progress));
  } else {
    WEFT_CHECK(give_up_left(parts, progress));
    WEFT_TRY(Fd collector, lock_collector(parts.path, LockKind::shared, parts.options.patience));
    WEFT_CHECK(check_stopped(parts, report));
    WEFT_TRY(const std::vector<SafePath> identities, damaged_identities(parts.path));
    for (const SafePath& file : identities)
      report.problems.push_back(file.str() + ": it is damaged or gone; run `weft fsck --rebuild`");
    Status status = check_index(parts, decode, progress, report);
    if (!status.ok() && status.error().code != Errc::corrupt) return std::move(status).error();
    if (!status.ok()) report.problems.push_back(status.error().message);
  }
  WEFT_CHECK(verify_packs(parts.packs, parts.blobs, options.data, progress, report));
  Status missing = find_missing(parts, report);
  if (missing.ok()) missing = find_missing_manifests(parts, report);
  if (!missing.ok() && missing.error().code != Errc::corrupt) return std::move(missing).error();
  AssembledPacks assembled(parts.path);
  WEFT_CHECK(verify_assembled(assembled, options.data, damaged_files_after(report.clean()), progress, report));
  return report;
}

}  // namespace weft
