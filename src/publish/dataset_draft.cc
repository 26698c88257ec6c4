#include "publish/dataset_draft.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "base/limits.h"
#include "base/sha256.h"
#include "dataset/file_table.h"
#include "dataset/record_table.h"
#include "os/file_ops.h"
#include "os/memory_file.h"
#include "publish/bundles.h"
#include "publish/gather_rules.h"
#include "weft/model/dataset.h"
#include "weft/model/lfs_pointer.h"

namespace weft {
namespace {

// The number of extents that fit into a manifest.
constexpr std::uint64_t kSegmentsMax = limits::kManifestMax / 64;

std::vector<Range> segments_of(std::uint64_t size) {
  std::vector<Range> segments;
  for (std::uint64_t at = 0; at < size; at += kSegmentMax) segments.push_back({at, std::min(kSegmentMax, size - at)});
  return segments;
}

File file_of(const SourceFile& source, std::uint64_t size, std::span<const Range> ranges) {
  File file;
  file.path = source.path;
  file.size = size;
  file.role = source.role;
  file.extents.reserve(ranges.size());
  for (const Range& range : ranges) file.extents.push_back({range.offset, {range.length, {}}});
  return file;
}

Error unlike(std::string_view what) {
  return Error{Errc::invalid, fmt::format("import: the small files: expected {}", what)};
}

Result<std::vector<std::byte>> read_table(const SourceFile& source) {
  struct stat seen {};
  WEFT_TRY(const Fd fd, open_source(source, seen));
  if (static_cast<std::uint64_t>(seen.st_size) != source.size) return unlike("a table of the announced size");
  return read_whole(fd.get(), seen, limits::kFileTableMax, source.where);
}

Status check_apart(const FileTable& table, std::span<const Draft> published, std::span<const SourceFile> stored,
                   std::span<const std::string> directories) {
  for (const std::string& path : directories)
    if (!table.is_apart(path))
      return Error{Errc::invalid, fmt::format("{}: a small file has the place of this empty directory", path)};
  for (const Draft& draft : published)
    if (!table.is_apart(draft.source.path))
      return Error{Errc::invalid, fmt::format("{}: a small file or a directory has its place", draft.source.where)};
  for (const SourceFile& file : stored)
    if (!table.is_apart(file.path))
      return Error{Errc::invalid, fmt::format("{}: a small file or a directory has its place", file.where)};
  return {};
}

class DatasetDraft {
 public:
  explicit DatasetDraft(std::vector<SourceFile> sources) : files_(drafts_of(std::move(sources))) {
    files_.manifest.kind = VersionKind::dataset;
  }

  Result<DraftFiles> run(Progress& progress) {
    const std::span<Draft> published = of(FileRole::published);
    WEFT_CHECK(plan_small(published));
    progress.phase("looking at files");
    for (Draft& draft : published) {
      if (progress.cancelled()) return cancelled_import();
      WEFT_CHECK(examine(draft));
    }
    for (Draft& draft : files_.drafts) {
      if (draft.source.role != FileRole::published) continue;
      File& file = files_.manifest.files.emplace_back(
          file_of(draft.source, static_cast<std::uint64_t>(draft.seen.st_size), draft.ranges));
      file.execute = execute_bits(draft.seen.st_mode);
      if (draft.container != nullptr) file.format = draft.container->name();
    }
    for (Draft& draft : files_.drafts)
      if (draft.source.role != FileRole::published)
        files_.manifest.files.push_back(file_of(draft.source, draft.source.size, draft.ranges));
    return std::move(files_);
  }

 private:
  std::span<Draft> of(FileRole role) {
    const auto role_of = [](const Draft& draft) { return draft.source.role; };
    const auto first = std::ranges::lower_bound(files_.drafts, role, {}, role_of);
    return {first, std::ranges::upper_bound(first, files_.drafts.end(), role, {}, role_of)};
  }

  Status plan_small(std::span<const Draft> published) {
    const std::span<Draft> bundles = of(FileRole::bundle);
    const std::span<Draft> tables = of(FileRole::file_table);
    if (tables.size() > 1 || (tables.empty() && !bundles.empty())) return unlike("one table of them");
    if (tables.empty()) return {};
    Draft& draft = tables.front();
    WEFT_TRY(const std::vector<std::byte> bytes, read_table(draft.source));
    WEFT_TRY(const FileTable table, FileTable::check(bytes));
    WEFT_CHECK(check_apart(table, published, files_.stored, files_.manifest.directories));
    WEFT_CHECK(keep(draft, bytes));
    draft.ranges = {{0, bytes.size()}};  // one blob: a mount reads it in place
    files_.small_files = table.files();
    std::vector<Bundle> plan = plan_bundles(table);
    const bool alike = std::ranges::equal(
        plan, bundles, [](const Bundle& planned, const Draft& given) { return planned.bytes == given.source.size; });
    if (!alike) return unlike("bundles as their table says");
    for (std::size_t i = 0; i < plan.size(); ++i) {
      bundles[i].ranges = std::move(plan[i].segments);
      for (std::uint64_t file = 0; file < plan[i].files; ++file)
        bundles[i].small_sizes.push_back(table.range(plan[i].first_file + file).length);
    }
    return {};
  }

  // Keeps the checked bytes for the import: a client might send other bytes at the next open().
  static Status keep(Draft& table, std::span<const std::byte> bytes) {
    WEFT_TRY(Fd fd, memory_file(table.source.where, bytes));
    table.source.open = [kept = std::make_shared<const Fd>(std::move(fd))] { return open_descriptor(kept->get()); };
    return {};
  }

  Status examine(Draft& draft) {
    WEFT_TRY(const Fd fd, open_source(draft.source, draft.seen));
    std::vector<std::byte> head(kContainerHead);
    WEFT_TRY(const std::size_t got, read_some(fd.get(), 0, head, draft.source.where));
    const auto size = static_cast<std::uint64_t>(draft.seen.st_size);
    const std::string name = base_name(draft.source.path);
    const auto first = std::span(head).first(got);
    if (Status whole = refuse_lfs_pointer(name, size, first); !whole.ok())
      return Error{whole.error().code, fmt::format("{}: {}", draft.source.where, whole.error().message)};
    draft.container = container_format(name, first);
    segments_ += size / kSegmentMax + 1;
    if (segments_ > kSegmentsMax || (draft.container != nullptr && ++containers_ > containers_max()))
      return Error{Errc::unsupported,
                   fmt::format("{}: a data set may have {} MiB, and {} containers of records", draft.source.where,
                               kSegmentsMax * kSegmentMax >> 20U, containers_max())};
    draft.ranges = segments_of(size);
    return {};
  }

  DraftFiles files_;
  std::uint64_t segments_ = 0;
  std::uint64_t containers_ = 0;
};

}  // namespace

Result<DraftFiles> draft_dataset(std::vector<SourceFile> sources, Progress& progress) {
  return DatasetDraft(std::move(sources)).run(progress);
}

Status add_record_table(Import& import, DraftFiles& files, Draft& container, std::vector<File>& tables,
                        Progress& progress) {
  const std::vector<std::byte> bytes = std::exchange(container.records, {});
  if (bytes.empty()) return {};
  const std::string where = "records of " + container.source.where;
  const SourceFile source{.path = container.source.path, .where = where, .role = FileRole::record_table};
  const Range whole{0, bytes.size()};
  files.records += RecordTable::check(bytes).value().size();
  WEFT_TRY(const Fd fd, memory_file(where, bytes));
  File& file = tables.emplace_back(file_of(source, bytes.size(), std::span(&whole, 1)));
  WEFT_TRY(file.extents, import.add(fd.get(), where, std::span(&whole, 1), progress));
  return {};
}

Status add_sums(Import& import, DraftFiles& files, Progress& progress) {
  if (files.small_files == 0) return {};
  std::vector<Digest> digests;
  digests.reserve(files.small_files);
  for (Draft& draft : files.drafts)
    if (draft.source.role == FileRole::bundle)
      std::ranges::copy(std::exchange(draft.sums, nullptr)->digests, std::back_inserter(digests));
  digests.resize(files.small_files, sha256({}));  // the last empty files may be in no bundle
  const auto bytes = std::as_bytes(std::span(digests));
  const std::string where = "sums of small files";
  const SourceFile source{.path = {}, .where = where, .role = FileRole::sums};
  const std::vector<Range> ranges = segments_of(bytes.size());
  WEFT_TRY(const Fd fd, memory_file(where, bytes));
  File& file = files.manifest.files.emplace_back(file_of(source, bytes.size(), ranges));
  WEFT_TRY(file.extents, import.add(fd.get(), where, ranges, progress));
  return {};
}

}  // namespace weft
