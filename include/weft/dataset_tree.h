// The trees that users see of one version of a data set: what was published, at datasets/, and its records, at
// records/. A pure function of the manifest and of its tables, which are looked at only for what they alone say. Node i
// of a version has the inode number (version's ino_base + i); dataset/dataset_numbers.h says which node is what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/content.h"
#include "weft/manifest.h"
#include "weft/records.h"
#include "weft/result.h"
#include "weft/tree.h"

namespace weft {

// How many inode numbers a version of this content takes: those of its tree (weft/tree.h), and of a data set more.
// Errc::unsupported: more than limits::kTreeNodesMax.
Result<std::uint64_t> count_nodes(const Manifest& manifest);
std::uint64_t containers_max();  // of one version, that have records

// datasets/NAME/V is the node kPublishedRoot. records/NAME/V has the number that the layers of a model have.
inline constexpr std::uint64_t kRecordsRoot = kLayersRoot;

// The file table or a record table in memory, which was found to be sound. Immutable; any thread.
class DatasetTable;
using DatasetTablePointer = std::shared_ptr<const DatasetTable>;
// `file` of the manifest is the table. Its bytes stay the same while `keeper` lives. Errc::corrupt: the table is
// damaged, or does not fit the manifest.
Result<DatasetTablePointer> check_table(const Manifest& manifest, std::uint32_t file, std::span<const std::byte> bytes,
                                        std::shared_ptr<const void> keeper);
// Gives the table that is this file of the manifest, checked. Asked each time that a tree needs it; any thread.
using DatasetTables = std::function<Result<DatasetTablePointer>(std::uint32_t file)>;

// Looks at all tables of the manifest.
Result<DatasetFacts> dataset_facts(const Manifest& manifest, const DatasetTables& tables);

struct DatasetNode {
  enum class Kind : std::uint8_t {
    dir,
    published,  // all of `file`, a published file of the manifest; the node of the version's tree has the same number
    part,       // `range` of `file`, any file of the manifest
    made,       // DatasetTree::made()
  };
  Kind kind = Kind::dir;
  std::uint32_t file = 0;
  Range range = {};
};

struct DatasetEntry {
  std::uint64_t number = 0;
  std::string name = {};
  DatasetNode node = {};
  std::uint64_t behind = 0;  // where a listing goes on behind this entry; not 0
};

struct DatasetPage {
  std::vector<DatasetEntry> entries;
  bool last = false;
};

// The content of a generated file. Lives on without the tree; any thread.
struct MadeFile {
  std::uint64_t size = 0;
  std::function<void(std::uint64_t offset, std::span<std::byte> out)> read;  // within the size
  std::size_t memory_bytes = 0;                                              // that this takes, about
};

// Immutable; any thread. Errors are those of DatasetTables, and Errc::not_found for numbers of no node and names that
// are not there.
class DatasetTree {
 public:
  DatasetTree(std::shared_ptr<const VersionTree> tree, DatasetTables tables);
  ~DatasetTree();

  std::uint64_t size() const;  // numbers are below
  Result<DatasetNode> node(std::uint64_t number) const;
  // `dir` is a directory, here and below; else Errc::not_dir. The two roots are their own parents.
  Result<std::uint64_t> parent(std::uint64_t dir) const;
  Result<DatasetEntry> lookup(std::uint64_t dir, std::string_view name) const;
  // Entries from `from` on: 0, or DatasetEntry::behind of an earlier one. Those of datasets/ by name. Those of part/
  // and order/ are not listed.
  Result<DatasetPage> list(std::uint64_t dir, std::uint64_t from, std::size_t entries_max) const;
  Result<MadeFile> made(std::uint64_t number) const;
  Result<DatasetFacts> facts() const;  // dataset_facts() of its manifest
  // The rows of a published file; nothing if it has no record table. They live on without the tree.
  Result<std::optional<RecordRows>> rows(std::uint32_t file) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace weft
