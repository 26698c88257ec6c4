#include "vfs/hidden_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace weft {
namespace {

constexpr std::size_t kReadStep = 1U << 20U;

std::string where_of(const VersionRow& version, const File& file) {
  const std::string_view what = file.role == FileRole::bundle ? "bundle of small files" : "table";
  return fmt::format("{}@{}: {} {}", version.model_name, version.number, what, printable(file.path));
}

// Returns the cache key of a file. Ids of versions are below 2^32 (numbers.h), and so are the files of a manifest.
std::uint64_t key_of(const VersionRow& version, std::uint32_t file) {
  return version.id << 32U | file;
}

Status read_all(OpenFile& file, std::uint64_t offset, std::span<std::byte> out) {
  WEFT_TRY(const std::size_t got, file.read(offset, out));
  return got == out.size() ? Status{} : Status(Error{Errc::io, "a table ended early"});
}

// A whole file in memory.
struct Loaded {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keeper;
  std::size_t memory = 0;  // bytes allocated for it
};

// Maps the file; returns nothing if its bytes are not contiguous in memory. Reads all bytes first, so that a disk error
// is reported here and not as SIGBUS.
Result<Loaded> load_mapped(const std::shared_ptr<OpenFile>& file) {
  std::vector<std::byte> step(std::min<std::uint64_t>(kReadStep, file->size()));
  for (std::uint64_t at = 0; at < file->size(); at += step.size())
    WEFT_CHECK(read_all(*file, at, std::span(step).first(std::min<std::uint64_t>(step.size(), file->size() - at))));
  WEFT_TRY(const MemoryParts parts, file->in_memory(0, file->size()));
  if (parts.size() != 1 || parts.front().size() != file->size()) return Loaded();
  return Loaded{parts.front(), file, 0};
}

Result<Loaded> load_copy(OpenFile& file) {
  const auto copy = std::make_shared<std::vector<std::byte>>(file.size());
  WEFT_CHECK(read_all(file, 0, *copy));
  return Loaded{*copy, copy, copy->size()};
}

Result<Loaded> load_bytes(const std::shared_ptr<OpenFile>& file) {
  WEFT_TRY(Loaded mapped, load_mapped(file));
  return mapped.keeper != nullptr ? Result<Loaded>(std::move(mapped)) : load_copy(*file);
}

}  // namespace

Result<std::shared_ptr<OpenFile>> HiddenFiles::open(const VersionRow& version, const Manifest& manifest,
                                                    std::uint32_t number) {
  const File& file = manifest.files[number];
  std::vector<ContentId> ids;
  std::vector<ColdBlob> blobs;
  for (const Extent& extent : file.extents) {
    ids.push_back(extent.id);
    blobs.push_back({extent.id, {version.id, number, extent.offset}});
  }
  auto opened = open_blobs(store_, where_of(version, file), "", ids, {}, {&places_, key_of(version, number)});
  if (opened.ok() || opened.error().code != Errc::absent || cold_.reads == nullptr) return opened;
  return open_cold(store_, cold_, where_of(version, file), "", blobs);
}

Result<DatasetTablePointer> HiddenFiles::table(const VersionRow& version, const Manifest& manifest,
                                               std::uint32_t number) {
  const std::uint64_t key = key_of(version, number);
  if (auto known = tables_.find(key)) return known;
  const std::lock_guard lock(loading_[(version.id + number) % loading_.size()]);
  if (auto known = tables_.find(key)) return known;
  WEFT_TRY(const auto file, open(version, manifest, number));
  WEFT_TRY(Loaded loaded, load_bytes(file));
  auto table = check_table(manifest, number, loaded.bytes, std::move(loaded.keeper));
  if (!table.ok())
    return Error{table.error().code,
                 fmt::format("{}: {}", where_of(version, manifest.files[number]), table.error().message)};
  tables_.put(key, *table, std::max(kTableBytesMin, loaded.memory));
  return table;
}

}  // namespace weft
