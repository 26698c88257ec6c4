// weft fsck: compares the index with the packs, the manifests and the journal.
#include <filesystem>
#include <set>

#include <fmt/core.h>

#include "catalog/giving_back.h"
#include "catalog/layout.h"
#include "diskformat/pack_names.h"
#include "index/pages.h"
#include "index/scratch_index.h"
#include "os/sys.h"
#include "packs/assembled.h"
#include "packs/verify.h"
#include "repair/compare.h"
#include "repair/rebuild.h"
#include "store/store_impl.h"

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
  const auto steps = txn.ok() ? steps_given_back(*txn, version) : Result<std::optional<std::uint64_t>>(txn.error());
  return steps.ok() ? steps->value_or(kAllHeld) : kAllHeld;
}

}  // namespace

// Builds a second index from the journal and the packs, which follows the writers until both are compared. gc and
// rebuilds wait meanwhile, so no manifest is removed and no removed version is reaped.
Status StoreImpl::check_index(const ContentDecoder& decode, Progress& progress, FsckReport& report) {
  progress.phase("comparing the index");
  const auto lock = [this]() -> Result<WriterLock> {
    WEFT_TRY(WriterLock held, Env::lock_writer(path_ / "index", options_.patience));
    if (options_.write) WEFT_CHECK(catch_up(held));
    return held;
  };
  const auto counters = [this]() -> Result<Counters> {
    WEFT_TRY(Txn txn, env_->read());
    return get_counters(txn);
  };
  WEFT_CHECK(lock());
  WEFT_TRY(const SafePath parent, scratch_parent(path_, options_.write));
  WEFT_TRY(ScratchIndex scratch, ScratchIndex::make(parent));
  const Manifests manifests(path_, PackedManifests{packs_, scratch.env()});
  RebuildInput input{journal_, manifests, packs_, decode};
  WEFT_TRY(input.index, counters());
  input.unreaped = [this](VersionId version) { return has_local(*env_, version); };
  input.given_back = [this](VersionId version) { return steps_taken(*env_, version); };
  input.known = [this](const ContentId& id) { return known_blob(*env_, id); };
  if (cluster()) input.node = cluster()->node;
  FsckReport made;
  WEFT_TRY(const std::string left, left_taking());
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
    status = compare_indexes({*env_, scratch.env(), packs_, follow, lock, has_content, progress}, compared);
  report.versions += made.versions;
  for (const FsckReport* part : {&made, &compared})
    report.problems.insert(report.problems.end(), part->problems.begin(), part->problems.end());
  return status;
}

// Reports held blobs whose pack is missing.
Status StoreImpl::find_missing(FsckReport& report) {
  WEFT_TRY(const std::vector<PackId> there, packs_.list());
  const std::set<PackId> packs(there.begin(), there.end());
  std::vector<DamagedBlob> missing;
  WEFT_CHECK(visit_all(*env_, Table::blobs, {}, [&](Txn& txn, const Entry& entry) -> Status {
    WEFT_TRY(const BlobRow blob, row_from<BlobRow>(txn, Table::blobs, entry.key, entry.value));
    if (!blob.absent() && !packs.contains(blob.place.pack)) missing.push_back({blob_id(entry.key), blob.place, ""});
    return {};
  }));
  for (DamagedBlob& blob : missing) {
    WEFT_TRY(const std::unique_ptr<BlobIndex> now, read());
    WEFT_TRY(const std::optional<BlobPlace> place, now->find(blob.id));
    const SafePath path = pack_path(path_, blob.place.pack);
    if (place != blob.place || stat_file(path).ok()) continue;  // moved or evicted meanwhile
    WEFT_TRY(const bool held, now->is_held(blob.id));
    if (!held) continue;
    blob.what = fmt::format("{}: is missing, with blob {} of {} bytes", path, to_hex(blob.id.root), blob.id.length);
    report.problems.push_back(blob.what);
    report.damaged.push_back(std::move(blob));
  }
  return {};
}

// Reports manifests whose pack is missing and that cannot be read from a file either.
Status StoreImpl::find_missing_manifests(FsckReport& report) {
  WEFT_TRY(const std::vector<PackId> there, packs_.list());
  const std::set<PackId> packs(there.begin(), there.end());
  std::vector<Digest> missing;
  WEFT_CHECK(visit_all(*env_, Table::manifests, {}, [&](Txn& txn, const Entry& entry) -> Status {
    WEFT_TRY(const auto row, row_from<ManifestRow>(txn, Table::manifests, entry.key, entry.value));
    if (row.packed() && !packs.contains(row.place.pack)) missing.push_back(digest_of(entry.key));
    return {};
  }));
  for (const Digest& digest : missing) {
    const auto manifest = manifests_.open(digest);
    if (!manifest.ok())
      report.problems.push_back(fmt::format("manifest {}: {}", to_hex(digest), manifest.error().message));
  }
  return {};
}

Result<FsckReport> StoreImpl::fsck(const FsckOptions& options, const ContentDecoder& decode, Progress& progress) {
  FsckReport report;
  if (options.rebuild && !options_.write) return Error{Errc::read_only, fmt::format("{}: opened for reading", path_)};
  if (options.rebuild) {
    WEFT_TRY(report, rebuild_store(path_, decode, {options.accept_loss, options_.patience}, progress));
  } else {
    WEFT_CHECK(give_up_left(progress));
    WEFT_TRY(Fd collector, lock_collector(path_, LockKind::shared, options_.patience));
    WEFT_CHECK(look_at_stopped(report));
    WEFT_TRY(const std::vector<std::string> identities, damaged_identities(path_));
    for (const std::string& file : identities)
      report.problems.push_back(file + ": it is damaged or gone; run `weft fsck --rebuild`");
    Status status = check_index(decode, progress, report);
    if (!status.ok() && status.error().code != Errc::corrupt) return std::move(status).error();
    if (!status.ok()) report.problems.push_back(status.error().message);
  }
  WEFT_CHECK(verify_packs(packs_, *this, options.data, progress, report));
  Status missing = find_missing(report);
  if (missing.ok()) missing = find_missing_manifests(report);
  if (!missing.ok() && missing.error().code != Errc::corrupt) return std::move(missing).error();
  AssembledPacks assembled(path_);
  WEFT_CHECK(verify_assembled(assembled, options.data, damaged_files_after(report.clean()), progress, report));
  return report;
}

}  // namespace weft
