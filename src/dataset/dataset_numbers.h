// The inode numbers of a version of a data set, from the version's first number on. Only tables contain some counts,
// such as the number of small files. The size of a table bounds them, so that all numbers follow from the manifest
// alone:
//
//   published   the nodes of the version's tree (weft/model/tree.h): published files and their directories. Its root is
//               datasets/NAME/V
//   records     as many numbers again: the directories of records/NAME/V that lead to containers
//   small       the directories of the file table, then its files
//   containers  a ContainerNumbers for each record table, then one for the file table (@files)
//
// A change of these numbers needs a new format of stores and registries, as a change of the tree's does.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "weft/model/manifest.h"

namespace weft {

// Bounds of the shares part/N/r.npy and order/SEED/N/r.npy that a data loader can open.
inline constexpr std::uint64_t kSharePartsMax = 4096;  // N; r < N
inline constexpr std::uint64_t kShareSeeds = 65'536;   // SEED is below this

struct ShareName {
  std::optional<std::uint64_t> seed = {};   // none: below part/
  std::optional<std::uint64_t> parts = {};  // none: part/ or order/SEED/ itself
  std::optional<std::uint64_t> rank = {};   // none: part/N/ or order/SEED/N/ itself
  bool operator==(const ShareName&) const = default;
};

// Numbers of one container, counted from its first number.
struct ContainerNumbers {
  enum class Fixed : std::uint8_t { dir, files, index_npy, keys_txt, skipped_txt, order };
  static constexpr std::uint64_t kFixed = 16;  // numbers of fixed entries; Fixed names the first ones
  static constexpr std::uint64_t kOfGroup = 1 + kSharePartsMax + kSharePartsMax * (kSharePartsMax + 1) / 2;
  static constexpr std::uint64_t kShares = (1 + kShareSeeds) * kOfGroup;
  static constexpr std::uint64_t kOfPath = 65;  // for a path of files/, and for up to 64 directories above it

  static constexpr std::uint64_t share(const ShareName& name) {
    const std::uint64_t group = (name.seed ? 1 + *name.seed : 0) * kOfGroup;
    if (!name.parts) return kFixed + group;
    if (!name.rank) return kFixed + group + *name.parts;
    return kFixed + group + 1 + kSharePartsMax + *name.parts * (*name.parts - 1) / 2 + *name.rank;
  }
  static ShareName share_of(std::uint64_t number);  // kFixed <= number < kFixed + kShares
  // The number of a file in files/ follows from the index of its path among all paths. The number of a directory
  // follows from the index of the first path below it, and from the number of components of its own path, 1 to 64.
  static constexpr std::uint64_t path(std::uint64_t first, unsigned components_of_directory = 0) {
    return kFixed + kShares + first * kOfPath + components_of_directory;
  }
  static constexpr std::uint64_t count(std::uint64_t table_bytes) { return kFixed + kShares + table_bytes * kOfPath; }
};

// A part of the numbering: the nodes of the tree in datasets/, directories of records/, small files, and containers.
enum class DatasetArea : std::uint8_t { none, tree, records, small, container };

class DatasetNumbers {
 public:
  DatasetNumbers(const Manifest& manifest, std::uint64_t tree_nodes);

  std::uint64_t records() const { return tree_nodes_; }    // number of the tree's node 0 in records/
  std::uint64_t small() const { return 2 * tree_nodes_; }  // number of directory 0 of the file table
  // First number of a container: record tables, then the file table.
  std::uint64_t container(std::size_t i) const { return containers_[i]; }
  std::size_t containers() const { return containers_.size() - 1; }
  std::uint64_t end() const { return containers_.back(); }  // how many numbers the version has
  DatasetArea area_of(std::uint64_t number) const;
  // Returns the container that has this number. container(0) <= number < end().
  std::size_t container_of(std::uint64_t number) const;

 private:
  const std::uint64_t tree_nodes_;
  std::vector<std::uint64_t> containers_;  // first number of each container, then the end
};

}  // namespace weft
