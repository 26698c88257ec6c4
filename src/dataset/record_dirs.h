// The directories of records/NAME/V that lead to containers with a record table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dataset/dataset_numbers.h"
#include "weft/dataset_tree.h"
#include "weft/tree.h"

namespace weft {

inline constexpr std::string_view kSmallFilesName = "@files";  // a published path of this name hides it

// Numbers are those of the version. The manifest's record tables are sorted by path, so the tables below a directory
// are consecutive. One thread; the tree and the numbers outlive this object.
class RecordDirs {
 public:
  RecordDirs(const VersionTree& tree, const DatasetNumbers& numbers);

  Result<DatasetNode> node(std::uint64_t number) const;
  Result<std::uint64_t> parent(std::uint64_t dir) const;
  Result<std::uint64_t> parent_of_container(std::size_t container) const;
  Result<DatasetEntry> lookup(std::uint64_t dir, std::string_view name) const;
  Result<DatasetPage> list(std::uint64_t dir, std::uint64_t from, std::size_t entries_max) const;

 private:
  struct Dir {
    std::uint32_t node = 0;  // in the version's tree
    std::string prefix;      // "" or "a/b/"
  };

  Result<Dir> directory(std::uint64_t number) const;
  std::uint64_t number_of_dir(std::uint32_t node) const;
  std::size_t first_table(std::string_view at_least) const;
  // Returns the record table of the container `name`, or the first table below the directory `name`.
  std::optional<std::size_t> find(const Dir& dir, std::string_view name) const;
  bool has_small_files() const { return numbers_.containers() > tables_.size(); }
  // Returns the entry of `dir` that is the container of `table`, or leads to it.
  DatasetEntry entry_of(const Dir& dir, std::size_t table) const;
  DatasetEntry small_files_entry() const;

  const VersionTree& tree_;
  const DatasetNumbers& numbers_;
  const std::span<const File> tables_;
};

}  // namespace weft
