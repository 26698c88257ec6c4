// weft fsck: the index is compared with what packs, manifests and journal make of it.
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

bool has_local(Txn& txn, VersionId version) {
  auto local = find_row<LocalRow>(txn, Table::locals, key_of(version));
  return local.ok() && local->has_value();
}

std::optional<FoundBlob> known_blob(Txn& txn, const ContentId& id) {
  auto blob = find_blob(txn, id);
  return blob.ok() ? std::move(*blob) : std::nullopt;
}

}  // namespace

// Under the writer lock, so that index, journal and packs stay what they are. Nobody waits for this snapshot meanwhile.
Status StoreImpl::check_index(const ContentDecoder& decode, Progress& progress, FsckReport& report) {
  progress.phase("comparing the index");
  WEFT_TRY(WriterLock lock, Env::lock_writer(path_ / "index", options_.patience));
  if (options_.write) WEFT_CHECK(catch_up(lock));
  WEFT_TRY(const SafePath parent, scratch_parent(path_, options_.write));
  WEFT_TRY(ScratchIndex scratch, ScratchIndex::make(parent));
  WEFT_TRY(Txn have, env_->read());
  WEFT_TRY(Counters counters, get_counters(have));
  RebuildInput input{journal_, manifests_, packs_, decode, counters.journal_end, false, false, false, {}, {}};
  input.unreaped = [&have](VersionId version) { return has_local(have, version); };
  input.given_back = [&have](VersionId version) {
    const auto steps = steps_given_back(have, version);
    return steps.ok() ? steps->value_or(kAllHeld) : kAllHeld;
  };
  input.known = [&have](const ContentId& id) { return known_blob(have, id); };
  if (cluster()) input.node = cluster()->node;
  std::size_t before = report.problems.size();
  WEFT_CHECK(fill_index(scratch.env(), input, progress, report));
  WEFT_TRY(Txn want, scratch.env().read());
  return compare_indexes(have, want, report.problems.size() == before, report);
}

// Blobs that the index names in packs that are gone.
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
    if (place != blob.place || stat_file(path).ok()) continue;  // gc or an eviction moved it meanwhile
    WEFT_TRY(const bool held, now->is_held(blob.id));
    if (!held) continue;
    blob.what = fmt::format("{}: is missing, with blob {} of {} bytes", path, to_hex(blob.id.root), blob.id.length);
    report.problems.push_back(blob.what);
    report.damaged.push_back(std::move(blob));
  }
  return {};
}

Result<FsckReport> StoreImpl::fsck(const FsckOptions& options, const ContentDecoder& decode, Progress& progress) {
  FsckReport report;
  if (options.rebuild && !options_.write) return Error{Errc::read_only, fmt::format("{}: opened for reading", path_)};
  if (options.rebuild) {
    WEFT_TRY(report, rebuild_store(path_, decode, {options.accept_loss, options_.patience}, progress));
  } else {
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
  if (!missing.ok() && missing.error().code != Errc::corrupt) return std::move(missing).error();
  AssembledPacks assembled(path_);
  WEFT_CHECK(verify_assembled(assembled, options.data, damaged_files_after(report.clean()), progress, report));
  return report;
}

}  // namespace weft
