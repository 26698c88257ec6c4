// The tree of datasets/NAME/V: the large published files, which are in the version's tree, and the small ones, which
// are in the file table. A directory may have both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dataset/dataset_table.h"
#include "weft/dataset_tree.h"
#include "weft/tree.h"

namespace weft {

// Numbers are those of the version. A directory that is in the version's tree and in the file table has the number of
// its node in the tree. One thread; the tree and the table outlive this object.
class PublishedDirs {
 public:
  // `small` is nullptr if there are no small files. `first_small` is the number of directory 0 of the file table.
  PublishedDirs(const VersionTree& tree, const SmallFiles* small, std::uint64_t first_small)
      : tree_(tree), small_(small), first_small_(first_small) {}

  // `number` is below the tree's size, or at least `first_small`.
  Result<DatasetNode> node(std::uint64_t number) const;
  Result<std::uint64_t> parent(std::uint64_t dir) const;
  Result<DatasetEntry> lookup(std::uint64_t dir, std::string_view name) const;
  Result<DatasetPage> list(std::uint64_t dir, std::uint64_t from, std::size_t entries_max) const;

 private:
  // A directory of the version's tree, of the file table, or of both.
  struct Dir {
    std::optional<std::uint32_t> node;
    std::optional<std::uint64_t> small;
  };
  class Listing;

  Result<Dir> directory(std::uint64_t number) const;
  std::uint64_t number_of_dir(std::uint64_t small) const;
  DatasetEntry tree_entry(std::uint32_t node) const;
  DatasetEntry small_dir_entry(std::uint64_t small) const;
  DatasetEntry small_file_entry(std::uint64_t file) const;

  const VersionTree& tree_;
  const SmallFiles* const small_;
  const std::uint64_t first_small_;
};

// Returns the path of a published node of the version's tree; "" for the root.
std::string path_in_tree(const VersionTree& tree, std::uint32_t node);
// Returns the published node of a path; "" is the root.
std::optional<std::uint32_t> node_at(const VersionTree& tree, std::string_view path);

}  // namespace weft
