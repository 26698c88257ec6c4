// Assembled files of whole versions: for `weft pin`, gc, imports.
#include <fmt/core.h>

#include "base/log.h"
#include "node/assembly.h"
#include "node/fill.h"
#include "node/open_file.h"
#include "weft/assembly.h"
#include "weft/node.h"

namespace weft {
namespace {

// So little is copied while a publish waits: the ends of runs whose blocks are shared.
constexpr std::uint64_t kCopiedShare = 32;  // 1 / 32 of a file

bool never() {
  return false;
}

// Files that have a pack of their own are read as they are.
Result<bool> is_composed(Store& store, const AssembledSource& source) {
  WEFT_TRY(const auto file, open_blobs(store, source.where, "", source.blobs));
  return file->backing_fd() < 0;
}

// Those of the version's files that are worth assembling.
Result<std::vector<AssembledSource>> composed_files(Store& store, const VersionRow& row) {
  WEFT_TRY(const LoadedVersion version, load_version(store, row));
  const std::vector<File>& files = version.tree->manifest().files;
  std::vector<AssembledSource> sources;
  for (const File& file : files) {
    if (file.size < kAssembledFileMin) continue;
    auto source = assembled_source(file, fmt::format("{}@{}: {}", row.model_name, row.number, file.path));
    WEFT_TRY(const bool composed, is_composed(store, source));
    if (composed) sources.push_back(std::move(source));
  }
  return sources;
}

Result<VersionRow> find_version(Store& store, std::string_view spec) {
  WEFT_TRY(const auto snapshot, store.snapshot());
  return resolve_version(*snapshot, spec);
}

// The keys of every file of every live version. A version that cannot be read keeps nothing.
Result<AssembledDir::Needed> needed_keys(Store& store) {
  std::vector<VersionRow> rows;
  {
    WEFT_TRY(const auto snapshot, store.snapshot());
    WEFT_TRY(const auto models, snapshot->models());
    for (const ModelRow& model : models) {
      WEFT_TRY(auto versions, snapshot->versions(model.id));
      for (VersionRow& row : versions)
        if (!row.removed) rows.push_back(std::move(row));
    }
  }
  AssembledDir::Needed keys;
  for (const VersionRow& row : rows) {
    const auto version = load_version(store, row);
    if (!version.ok()) continue;
    const std::vector<File>& files = version->tree->manifest().files;
    for (const File& file : files)
      if (file.size >= kAssembledFileMin) keys[assembled_source(file, "").key].insert(row.id);
  }
  return keys;
}

Status make_one(Store& store, const AssembledDir& dir, const AssembledSource& source, std::uint64_t block_bytes,
                Progress& progress, PinReport& report) {
  AssemblyCounts counts;
  progress.phase(fmt::format("assembling {}", source.where));
  const auto cancelled = [&progress] { return progress.cancelled(); };
  Status made = assemble_now(store, dir, source, block_bytes, source.size, cancelled, counts);
  report.made += counts.made;
  progress.advance(source.size);
  // Who makes it now will give it its name; the marker waits for it.
  if (!made.ok() && (made.error().code == Errc::exists || made.error().code == Errc::busy)) return {};
  return made;
}

}  // namespace

AssembledUsage assembled_usage(Store& store) {
  return AssembledDir::view(store.path()).usage();
}

Result<AssembledSweep> sweep_assembled(Store& store, bool dry_run) {
  const auto dir = AssembledDir::view(store.path());
  const AssembledUsage usage = dir.usage();
  if (usage.files == 0 && usage.parts == 0) return AssembledSweep{};
  WEFT_TRY(const auto keys, needed_keys(store));
  return dir.sweep(&keys, dry_run);
}

Result<PinReport> pin_version(Store& store, std::string_view spec, Progress& progress) {
  WEFT_TRY(const AssembledDir dir, AssembledDir::open(store.path(), {}));
  WEFT_TRY(const VersionRow row, find_version(store, spec));
  WEFT_TRY(const VersionHold hold, store.hold_version(row.id));
  WEFT_TRY(const auto sources, composed_files(store, row));
  const std::uint64_t block_bytes = sharing_block_bytes(dir.path());
  PinReport report;
  for (const AssembledSource& source : sources) report.bytes += source.size;
  progress.total(report.bytes);
  for (const AssembledSource& source : sources) {
    // The marker first: what is there may not be evicted to make room for the next.
    WEFT_TRY(const bool pinned_now, dir.pin(source.key, row.id));
    ++report.files;
    Status made = make_one(store, dir, source, block_bytes, progress, report);
    if (made.ok()) continue;
    if (pinned_now) WEFT_CHECK(dir.unpin(source.key, row.id));
    return std::move(made).error();
  }
  return report;
}

Status unpin_version(Store& store, std::string_view spec) {
  WEFT_TRY(const AssembledDir dir, AssembledDir::open(store.path(), {}));
  WEFT_TRY(const VersionRow row, find_version(store, spec));
  WEFT_TRY(const auto sources, composed_files(store, row));
  for (const AssembledSource& source : sources) WEFT_CHECK(dir.unpin(source.key, row.id));
  return {};
}

Status set_assembly_max(Store& store, std::uint64_t bytes_max) {
  WEFT_TRY(const AssembledDir dir, AssembledDir::open(store.path(), {}));
  return dir.set_bytes_max(bytes_max);
}

void assemble_by_sharing(Store& store, const VersionRow& version) {
  const auto dir = AssembledDir::open(store.path(), {});
  const std::uint64_t block_bytes = dir.ok() ? sharing_block_bytes(dir->path()) : 0;
  if (block_bytes == 0) return;
  const auto sources = composed_files(store, version);
  if (!sources.ok()) return log_info("not assembled: {}", sources.error().message);
  for (const AssembledSource& source : *sources) {
    AssemblyCounts counts;
    const Status made = assemble_now(store, *dir, source, block_bytes, source.size / kCopiedShare, never, counts);
    if (!made.ok()) log_info("not assembled: {}", made.error().message);
  }
}

}  // namespace weft
