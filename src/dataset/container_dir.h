// The trees of records/NAME/V/CONTAINER and records/NAME/V/@files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "dataset/dataset_numbers.h"
#include "dataset/dataset_table.h"
#include "weft/dataset_tree.h"

namespace weft {

// The tree of one container. Numbers count from the container's first number (ContainerNumbers). One thread.
class ContainerDir {
 public:
  explicit ContainerDir(DatasetTablePointer table)
      : table_(std::move(table)), small_(table_->small_files()), records_(table_->records()) {}

  Result<DatasetNode> node(std::uint64_t number) const;
  Result<std::uint64_t> parent(std::uint64_t dir) const;  // `dir` is not the container's own directory
  Result<DatasetEntry> lookup(std::uint64_t dir, std::string_view name) const;
  Result<DatasetPage> list(std::uint64_t dir, std::uint64_t from, std::size_t entries_max) const;
  Result<MadeFile> made(std::uint64_t number) const;

 private:
  bool has(std::uint64_t entry) const;  // an entry of the container's own directory
  Result<DatasetNode> own_node(std::uint64_t number) const;
  // Returns the path of a directory below files/; "" for files/ itself.
  Result<std::string> path_of_dir(std::uint64_t number) const;
  DatasetEntry path_entry(std::string_view dir, const RecordTable::Entry& entry) const;
  DatasetNode row_node(std::uint64_t row) const;

  const DatasetTablePointer table_;
  const SmallFiles* const small_;          // nullptr: the table is a container's
  const ContainerRecords* const records_;  // nullptr: the table lists small files
};

}  // namespace weft
