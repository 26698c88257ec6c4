// Data sets (dataset/dataset_table.cc, dataset/dataset_numbers.cc): the checked tables of a version, and how many inode
// numbers the version takes. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "weft/content.h"
#include "weft/model/manifest.h"
#include "weft/model/records.h"
#include "weft/model/tree.h"
#include "weft/result.h"

namespace weft {

// Returns how many inode numbers a version with this content takes: those of its tree (weft/model/tree.h), and more for
// a data set. Errc::unsupported: more than limits::kTreeNodesMax.
Result<std::uint64_t> count_nodes(const Manifest& manifest);
std::uint64_t containers_max();  // of one version, with record tables

// datasets/NAME/V is the node kPublishedRoot. records/NAME/V has the number of the root of a model's layers.
inline constexpr std::uint64_t kRecordsRoot = kLayersRoot;

// A file table or record table in memory that has passed its check. Immutable; any thread.
class DatasetTable;
using DatasetTablePointer = std::shared_ptr<const DatasetTable>;
// Checks the table that is `file` of the manifest. Its bytes stay unchanged while `keeper` lives. Errc::corrupt: the
// table is damaged, or does not fit the manifest.
Result<DatasetTablePointer> check_table(const Manifest& manifest, std::uint32_t file, std::span<const std::byte> bytes,
                                        std::shared_ptr<const void> keeper);
// Returns the checked table that is `file` of the manifest. A caller does not keep the table; any thread.
using DatasetTables = std::function<Result<DatasetTablePointer>(std::uint32_t file)>;

// Reads the facts from all tables of the manifest.
Result<DatasetFacts> dataset_facts(const Manifest& manifest, const DatasetTables& tables);

// Returns the rows of a published file; nothing if it has no record table. The rows keep the table alive.
Result<std::optional<RecordRows>> rows_of(const Manifest& manifest, std::uint32_t file, const DatasetTables& tables);

}  // namespace weft
