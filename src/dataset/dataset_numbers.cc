#include "dataset/dataset_numbers.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/limits.h"
#include "dataset/binary_search.h"
#include "weft/model/dataset.h"
#include "weft/model/tree.h"

namespace weft {
namespace {

constexpr std::uint64_t kTableBytesMax = 1ULL << 36U;  // so that no sum wraps

}  // namespace

ShareName ContainerNumbers::share_of(std::uint64_t number) {
  const std::uint64_t group = (number - kFixed) / kOfGroup;
  const std::uint64_t inner = (number - kFixed) % kOfGroup;
  ShareName name;
  if (group != 0) name.seed = group - 1;
  if (inner == 0) return name;
  if (inner <= kSharePartsMax) {
    name.parts = inner;
    return name;
  }
  const std::uint64_t position = inner - 1 - kSharePartsMax;
  const auto first_of = [](std::uint64_t parts) { return parts * (parts - 1) / 2; };
  const std::uint64_t parts = first_that(kSharePartsMax, [&](std::uint64_t n) { return first_of(n + 1) > position; });
  name.parts = parts;
  name.rank = position - first_of(parts);
  return name;
}

DatasetNumbers::DatasetNumbers(const Manifest& manifest, std::uint64_t tree_nodes) : tree_nodes_(tree_nodes) {
  const std::span<const File> small = files_of(manifest, FileRole::file_table);
  std::uint64_t next = this->small() + (small.empty() ? 0 : small.front().size);
  const auto add = [&](std::uint64_t table_bytes) {
    containers_.push_back(next);
    next += ContainerNumbers::count(table_bytes);
  };
  for (const File& table : files_of(manifest, FileRole::record_table)) add(table.size);
  if (!small.empty()) add(small.front().size);
  containers_.push_back(next);
}

Result<std::uint64_t> count_nodes(const Manifest& manifest) {
  WEFT_TRY(const std::uint64_t tree_nodes, VersionTree::count(manifest));
  if (manifest.kind == VersionKind::model) return tree_nodes;
  const auto tables = files_of(manifest, FileRole::record_table);
  const bool bounded = tables.size() <= containers_max() && std::ranges::all_of(manifest.files, [](const File& file) {
                         return file.role < FileRole::file_table || file.size <= kTableBytesMax;
                       });
  const std::uint64_t nodes = bounded ? DatasetNumbers(manifest, tree_nodes).end() : UINT64_MAX;
  if (nodes <= limits::kTreeNodesMax) return nodes;
  return Error{
      Errc::unsupported,
      fmt::format("expected a data set of at most {} containers of records, and smaller tables", containers_max())};
}

std::uint64_t containers_max() {
  return limits::kTreeNodesMax / ContainerNumbers::kShares - 1;  // one is left for the small files
}

DatasetArea DatasetNumbers::area_of(std::uint64_t number) const {
  if (number >= end()) return DatasetArea::none;
  if (number >= container(0)) return DatasetArea::container;
  if (number >= small()) return DatasetArea::small;
  if (number >= records() || number == kRecordsRoot) return DatasetArea::records;
  return number < kRootCount && number != kPublishedRoot ? DatasetArea::none : DatasetArea::tree;
}

std::size_t DatasetNumbers::container_of(std::uint64_t number) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(containers_, number) - containers_.begin()) - 1;
}

}  // namespace weft
