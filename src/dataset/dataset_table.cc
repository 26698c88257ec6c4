#include "dataset/dataset_table.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "dataset/binary_search.h"
#include "weft/bytes/run_list.h"

namespace weft {
namespace {

Error misfit(std::string_view what) {
  return {Errc::corrupt, fmt::format("table of a data set: {}", what)};
}

std::optional<std::uint32_t> index_of(const Manifest& manifest, const File* file) {
  if (file == nullptr) return std::nullopt;
  return static_cast<std::uint32_t>(file - manifest.files.data());
}

// Checks that each small file lies in one bundle.
Status check_borders(const SmallFiles& small) {
  for (const std::uint64_t border : small.bundle_ends) {
    const std::uint64_t file =
        first_that(small.table.files(), [&](std::uint64_t i) { return end_of(small.table.range(i)) > border; });
    if (file < small.table.files() && small.table.range(file).offset < border)
      return misfit(fmt::format("file {}: expected its bytes in one bundle", file));
  }
  return {};
}

Result<SmallFiles> check_small_files(const Manifest& manifest, std::span<const std::byte> bytes) {
  SmallFiles small;
  WEFT_TRY(small.table, FileTable::check(bytes));
  const std::span<const File> bundles = files_of(manifest, FileRole::bundle);
  small.first_bundle = static_cast<std::uint32_t>(published_files(manifest).size());
  std::uint64_t end = 0;
  for (const File& bundle : bundles) small.bundle_ends.push_back(end += bundle.size);
  if (end != small.table.bytes())
    return misfit(fmt::format("expected bundles of {} bytes, got {}", small.table.bytes(), end));
  WEFT_CHECK(check_borders(small));
  for (const File& file : published_files(manifest))
    if (!small.table.is_apart(file.path))
      return misfit(fmt::format("\"{}\": a small file or its directory has this path too", printable(file.path)));
  for (const std::string& path : manifest.directories)
    if (!small.table.is_apart(path))
      return misfit(fmt::format("\"{}\": expected an empty directory, got small files", printable(path)));
  return small;
}

Result<ContainerRecords> check_records(const Manifest& manifest, std::uint32_t file, std::span<const std::byte> bytes) {
  ContainerRecords records;
  WEFT_TRY(records.table, RecordTable::check(bytes));
  records.table_file = file;
  const auto container = find_published(manifest, manifest.files[file].path);
  if (!container) return misfit("expected the table of a published file");
  records.container = *container;
  const std::uint64_t expected = manifest.files[*container].size;
  if (records.table.container_bytes() != expected)
    return misfit(fmt::format("expected a container of {} bytes, got {}", records.table.container_bytes(), expected));
  return records;
}

}  // namespace

std::optional<std::uint32_t> find_published(const Manifest& manifest, std::string_view path) {
  return index_of(manifest, find_file(manifest, FileRole::published, path));
}

std::optional<std::uint32_t> find_table(const Manifest& manifest, std::string_view path) {
  return index_of(manifest, find_file(manifest, FileRole::record_table, path));
}

FilePart SmallFiles::part(std::uint64_t file) const {
  Range range = table.range(file);
  const auto bundle = std::ranges::upper_bound(bundle_ends, range.offset) - bundle_ends.begin();
  if (bundle != 0) range.offset -= bundle_ends[static_cast<std::size_t>(bundle) - 1];
  return {first_bundle + static_cast<std::uint32_t>(bundle), range, table.execute(file)};
}

Result<DatasetTablePointer> check_table(const Manifest& manifest, std::uint32_t file, std::span<const std::byte> bytes,
                                        std::shared_ptr<const void> keeper) {
  if (bytes.size() != manifest.files[file].size) return misfit("expected as many bytes as the manifest says");
  if (manifest.files[file].role == FileRole::file_table) {
    WEFT_TRY(SmallFiles small, check_small_files(manifest, bytes));
    return std::make_shared<const DatasetTable>(std::move(small), std::move(keeper));
  }
  WEFT_TRY(ContainerRecords records, check_records(manifest, file, bytes));
  return std::make_shared<const DatasetTable>(std::move(records), std::move(keeper));
}

Result<DatasetFacts> dataset_facts(const Manifest& manifest, const DatasetTables& tables) {
  DatasetFacts facts;
  if (const auto small_files = files_of(manifest, FileRole::file_table); !small_files.empty()) {
    const auto number = static_cast<std::uint32_t>(small_files.data() - manifest.files.data());
    WEFT_TRY(const DatasetTablePointer small, tables(number));
    facts.small_files = small->small_files()->table.files();
  }
  for (const File& file : published_files(manifest)) {
    const auto why = std::ranges::find(file.metadata, kNoRecords, &std::pair<std::string, std::string>::first);
    if (why != file.metadata.end()) facts.containers.push_back({&file, {}, 0, why->second});
    const auto found = find_table(manifest, file.path);
    if (!found) continue;
    WEFT_TRY(const DatasetTablePointer table, tables(*found));
    const RecordTable& records = table->records()->table;
    facts.containers.push_back({&file, records.size(), records.left_out(), {}});
  }
  return facts;
}

Result<std::optional<RecordRows>> rows_of(const Manifest& manifest, std::uint32_t file, const DatasetTables& tables) {
  const auto found = find_table(manifest, manifest.files[file].path);
  if (!found) return std::optional<RecordRows>();
  WEFT_TRY(DatasetTablePointer table, tables(*found));
  RecordRows rows{table->records()->table.size(), {}};
  rows.row = [table = std::move(table)](std::uint64_t number) { return table->records()->table.row(number); };
  return std::optional(std::move(rows));
}

}  // namespace weft
