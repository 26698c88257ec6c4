// Reads the tables of a data set.
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "blobs/open_blobs.h"
#include "dataset/file_table.h"
#include "os/sys.h"
#include "weft/model/dataset.h"
#include "weft/programs/operations.h"

namespace weft {
namespace {

Result<std::vector<std::byte>> read_table(Store& store, const File& table) {
  std::vector<ContentId> ids;
  for (const Extent& extent : table.extents) ids.push_back(extent.id);
  const std::string where = table.path.empty() ? "the table of small files" : "records of " + table.path;
  WEFT_TRY(const auto places, open_blobs(store, ids));
  std::vector<std::byte> bytes(table.size);
  for (std::size_t i = 0; i < places.size(); ++i)
    WEFT_CHECK(read_exact(places[i].pack->fd(), places[i].offset,
                          std::span(bytes).subspan(table.extents[i].offset, ids[i].length), where));
  return bytes;
}

}  // namespace

Status each_small_file(Store& store, const Manifest& manifest, const std::function<Status(const SmallFile&)>& visit) {
  const std::span<const File> tables = files_of(manifest, FileRole::file_table);
  if (tables.empty()) return {};
  WEFT_TRY(const std::vector<std::byte> bytes, read_table(store, tables.front()));
  WEFT_TRY(const FileTable table, FileTable::check(bytes));
  const std::span<const File> bundles = files_of(manifest, FileRole::bundle);
  std::size_t bundle = 0;
  std::uint64_t start = 0;  // offset of the bundle in the concatenation of all bundles
  for (std::uint64_t directory = 0; directory < table.directories(); ++directory) {
    const FileTable::Directory dir = table.directory(directory);
    const std::string path = table.path_of(directory);
    for (std::uint64_t file = dir.first_file; file < dir.first_file + dir.files; ++file) {
      const Range range = table.range(file);
      while (bundle < bundles.size() && range.offset - start >= bundles[bundle].size && range.length != 0)
        start += bundles[bundle++].size;
      if (range.length != 0 &&
          (bundle == bundles.size() || range.length > bundles[bundle].size - (range.offset - start)))
        return Error{Errc::corrupt, fmt::format("{}: expected its bytes in a bundle", table.file_path(file))};
      const std::string name(table.name(file));
      WEFT_CHECK(visit({path.empty() ? name : path + '/' + name,
                        bundle,
                        {range.offset - start, range.length},
                        table.execute(file)}));
    }
  }
  return {};
}

Result<DatasetFacts> dataset_facts(Store& store, const Manifest& manifest) {
  return dataset_facts(manifest, [&](std::uint32_t file) -> Result<DatasetTablePointer> {
    WEFT_TRY(std::vector<std::byte> read, read_table(store, manifest.files[file]));
    const auto bytes = std::make_shared<const std::vector<std::byte>>(std::move(read));
    return check_table(manifest, file, *bytes, bytes);
  });
}

}  // namespace weft
