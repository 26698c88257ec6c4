// Assembled files of whole versions, for `weft pin`, gc and imports.
#include <algorithm>
#include <mutex>

#include <fmt/core.h>

#include "assembly/assembly.h"
#include "assembly/fill.h"
#include "base/log.h"
#include "os/safe_path.h"
#include "reading/open_file.h"
#include "weft/programs/operations.h"
#include "weft/store/assembly.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

bool never() {
  return false;
}

// True if the file has no pack of its own. A file with its own pack is read from that pack.
Result<bool> is_composed(Store& store, const AssembledSource& source) {
  WEFT_TRY(const auto file, open_blobs(store, source.where, "", source.blobs));
  return file->backing_fd() < 0;
}

// Returns the version's files that are large enough to be assembled.
Result<std::vector<AssembledSource>> large_files(Store& store, ManifestResolver& resolver, const VersionRow& row) {
  WEFT_TRY(const LoadedVersion version, load_version(store, resolver, row));
  std::vector<AssembledSource> sources;
  for (const File& file : published_files(version.tree->manifest()))
    if (file.size >= kAssembledFileMin)
      sources.push_back(assembled_source(file, fmt::format("{}@{}: {}", row.model_name, row.number, file.path)));
  return sources;
}

// Returns the large files of a version that have no pack of their own.
Result<std::vector<AssembledSource>> composed_files(Store& store, ManifestResolver& resolver, const VersionRow& row) {
  WEFT_TRY(auto files, large_files(store, resolver, row));
  std::vector<AssembledSource> sources;
  for (AssembledSource& file : files) {
    WEFT_TRY(const bool composed, is_composed(store, file));
    if (composed) sources.push_back(std::move(file));
  }
  return sources;
}

struct VersionFiles {
  std::set<PackId> ids;
  bool complete = true;  // false: a version could not be read, so `ids` lacks its files
};

// Reads only local manifests: assembled files are a cache, which is not worth the fetch of a manifest.
VersionFiles files_of(Store& store, const std::vector<VersionRow>& rows) {
  VersionFiles all;
  for (const VersionRow& row : rows) {
    const auto files = large_files(store, no_resolver(), row);
    all.complete = all.complete && files.ok();
    if (!files.ok()) continue;
    for (const AssembledSource& file : *files) all.ids.insert(file.id);
  }
  return all;
}

Result<std::set<PackId>> needed_files(Store& store) {
  std::vector<VersionRow> rows;
  WEFT_CHECK(each_row(store, list_models(), [&](const ModelRow& model) {
    return each_row(store, list_versions(model.id), [&](VersionRow row) -> Status {
      if (!row.removed) rows.push_back(std::move(row));
      return {};
    });
  }));
  return files_of(store, rows).ids;
}

// Caches the files of pinned versions until other versions are pinned: a version never changes. Any thread.
class PinnedFiles {
 public:
  explicit PinnedFiles(Store& store) : store_(store) {}
  Result<std::set<PackId>> get() {
    const std::lock_guard lock(mutex_);
    WEFT_TRY(std::vector<VersionId> pinned, all_ids(store_, &Snapshot::pinned));
    if (files_.complete && pinned == versions_) return files_.ids;
    std::vector<VersionRow> rows;
    Renewed renewed(store_);
    for (const VersionId version : pinned) {
      WEFT_TRY(Snapshot * now, renewed.get());
      WEFT_TRY(VersionRow row, now->version(version));
      rows.push_back(std::move(row));
    }
    renewed.end();
    files_ = files_of(store_, rows);
    versions_ = std::move(pinned);
    return files_.ids;
  }

 private:
  Store& store_;
  std::mutex mutex_;
  std::vector<VersionId> versions_;  // guarded by mutex_
  VersionFiles files_;               // guarded by mutex_
};

Status make_one(Store& store, AssembledPacks& packs, const AssembledSource& source, std::uint64_t block_bytes,
                Progress& progress, PinReport& report) {
  AssemblyCounts counts;
  progress.phase(fmt::format("assembling {}", source.where));
  const auto cancelled = [&progress] { return progress.cancelled(); };
  Status made = assemble_now(store, packs, source, block_bytes, source.size, cancelled, counts);
  report.made += counts.made;
  progress.advance(source.size);
  // The file is assembled already, or another process is making it.
  if (!made.ok() && (made.error().code == Errc::exists || made.error().code == Errc::busy)) return {};
  return made;
}

Result<PinReport> assemble_version(Store& store, ManifestResolver& resolver, const VersionRow& row,
                                   Progress& progress) {
  const auto packs = assembled_packs(store, {});
  WEFT_TRY(const auto sources, composed_files(store, resolver, row));
  const std::uint64_t block_bytes = packs->block_bytes().value_or(0);
  PinReport report;
  report.files = sources.size();
  for (const AssembledSource& source : sources) report.bytes += source.size;
  progress.total(report.bytes);
  for (const AssembledSource& source : sources)
    WEFT_CHECK(make_one(store, *packs, source, block_bytes, progress, report));
  return report;
}

}  // namespace

std::unique_ptr<AssembledPacks> assembled_packs(Store& store, std::optional<std::uint64_t> bytes_max) {
  AssembledPacks::Options options;
  options.bytes_max = bytes_max;
  options.block_bytes = [cache = store.directory() / "cache"] { return sharing_block_bytes(cache); };
  options.pinned = [pinned = std::make_shared<PinnedFiles>(store)] { return pinned->get(); };
  return std::make_unique<AssembledPacks>(store.directory(), std::move(options));
}

AssembledUsage assembled_usage(Store& store) {
  return assembled_packs(store, {})->usage();
}

Result<AssembledSweep> sweep_assembled(Store& store, bool dry_run) {
  const auto packs = assembled_packs(store, {});
  const AssembledUsage usage = packs->usage();
  if (usage.files == 0 && usage.parts == 0) return AssembledSweep{};
  WEFT_TRY(const auto needed, needed_files(store));
  return packs->sweep(&needed, dry_run);
}

// Records the pin first, so that assembled files of the version are not evicted to make space for its other files.
Result<PinReport> pin_version(Store& store, ManifestResolver& resolver, std::string_view spec, const RecordPin& record,
                              Progress& progress) {
  WEFT_TRY(const VersionRow row, version_of(store, spec));
  WEFT_TRY(const VersionHold hold, store.hold_version(row.id));
  bool already = false;
  {
    WEFT_TRY(const auto snapshot, store.snapshot());
    WEFT_TRY(const auto pinned, snapshot->pinned(row.id, 1));
    already = std::ranges::find(pinned, row.id) != pinned.end();
  }
  if (!already) WEFT_CHECK(record(row, true));
  auto report = assemble_version(store, resolver, row, progress);
  if (!report.ok() && !already) WEFT_CHECK(record(row, false));
  return report;
}

Status set_assembly_max(Store& store, std::uint64_t bytes_max) {
  return assembled_packs(store, {})->set_bytes_max(bytes_max);
}

// A mount assembles these files later, so an error is no news for the user of an import.
void assemble_given(Store& store, const VersionRow& version, std::span<const GivenFile> files) {
  const auto packs = assembled_packs(store, {});
  if (files.empty() || !packs->writable()) return;
  const auto loaded = load_version(store, no_resolver(), version);
  if (!loaded.ok()) return log_debug(LogCategory::store, "not assembled: {}", loaded.error().message);
  for (const File& file : published_files(loaded->tree->manifest())) {
    const auto given = std::ranges::find(files, file.path, &GivenFile::path);
    if (given == files.end() || file.size < kAssembledFileMin) continue;
    const AssembledSource source = assembled_source(file, file.path);
    const auto composed = is_composed(store, source);
    if (!composed.ok() || !*composed || packs->find(source).ok()) continue;
    const Status made = assemble_of(store, *packs, source, given->fd, given->take);
    if (!made.ok()) log_debug(LogCategory::store, "not assembled: {}", made.error().message);
  }
}

bool shares_blocks(const std::string& store_path) {
  const auto directory = SafePath::open_owned(store_path);
  if (!directory.ok()) return false;
  const auto block_bytes = sharing_block_bytes(*directory);
  return block_bytes.ok() && *block_bytes != 0;
}

void assemble_by_sharing(Store& store, const VersionRow& version) {
  const auto packs = assembled_packs(store, {});
  const std::uint64_t block_bytes = packs->writable() ? packs->block_bytes().value_or(0) : 0;
  if (block_bytes == 0) return;
  const auto sources = composed_files(store, no_resolver(), version);
  if (!sources.ok()) return log_debug(LogCategory::store, "not assembled: {}", sources.error().message);
  for (const AssembledSource& source : *sources) {
    if (packs->find(source).ok()) continue;  // the mount verifies it if necessary
    AssemblyCounts counts;
    const Status made = assemble_now(store, *packs, source, block_bytes, source.size / kCopiedShare, never, counts);
    if (!made.ok()) log_debug(LogCategory::store, "not assembled: {}", made.error().message);
  }
}

}  // namespace weft
