// The inode numbers of a version of a data set, from the version's first number on. What only a table says, as how many
// small files there are, is bounded by the table's size, so that all numbers follow from the manifest:
//
//   published   the nodes of the version's tree (weft/tree.h): published files and their directories. Its root is
//               datasets/NAME/V
//   records     the same again: the directories of records/NAME/V, and of each container its own
//   small       directories and then files of the file table
//   containers  of each record table, then of the file table (@files): a ContainerNumbers
//
// A change of these numbers needs a new format of stores and registries, as a change of the tree's does.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "weft/manifest.h"

namespace weft {

// What a loader of data may ask for as part/N/r.npy and order/SEED/N/r.npy.
inline constexpr std::uint64_t kSharePartsMax = 4096;  // N; r < N
inline constexpr std::uint64_t kShareSeeds = 65'536;   // SEED is below

struct ShareName {
  std::optional<std::uint64_t> seed = {};   // none: below part/
  std::optional<std::uint64_t> parts = {};  // none: part/ or order/SEED/ itself
  std::optional<std::uint64_t> rank = {};   // none: part/N/ or order/SEED/N/ itself
  bool operator==(const ShareName&) const = default;
};

// Of one container, from its first number on.
struct ContainerNumbers {
  enum class Fixed : std::uint8_t { dir, files, index_npy, keys_txt, skipped_txt, order };
  static constexpr std::uint64_t kFixed = 16;  // of which Fixed has the first
  static constexpr std::uint64_t kOfGroup = 1 + kSharePartsMax + kSharePartsMax * (kSharePartsMax + 1) / 2;
  static constexpr std::uint64_t kShares = (1 + kShareSeeds) * kOfGroup;
  static constexpr std::uint64_t kOfPath = 65;  // a path of files/, and the directories above it that it is first in

  static constexpr std::uint64_t share(const ShareName& name) {
    const std::uint64_t group = (name.seed ? 1 + *name.seed : 0) * kOfGroup;
    if (!name.parts) return kFixed + group;
    if (!name.rank) return kFixed + group + *name.parts;
    return kFixed + group + 1 + kSharePartsMax + *name.parts * (*name.parts - 1) / 2 + *name.rank;
  }
  static ShareName share_of(std::uint64_t number);  // kFixed <= number < kFixed + kShares
  // A path of files/ by its number among all; a directory by that of the first path below it, and by how many
  // components its own path has, 1 to 64.
  static constexpr std::uint64_t path(std::uint64_t first, unsigned components_of_directory = 0) {
    return kFixed + kShares + first * kOfPath + components_of_directory;
  }
  static constexpr std::uint64_t count(std::uint64_t table_bytes) { return kFixed + kShares + table_bytes * kOfPath; }
};

class DatasetNumbers {
 public:
  DatasetNumbers(const Manifest& manifest, std::uint64_t tree_nodes);

  std::uint64_t records() const { return tree_nodes_; }                    // of the tree's node 0
  std::uint64_t small() const { return 2 * tree_nodes_; }                  // of directory 0
  std::uint64_t container(std::size_t i) const { return containers_[i]; }  // record tables, then the file table
  std::size_t containers() const { return containers_.size() - 1; }
  std::uint64_t end() const { return containers_.back(); }  // how many numbers the version has
  // Which container has this number: the last that begins at or before it. container(0) <= number < end().
  std::size_t container_of(std::uint64_t number) const;

 private:
  const std::uint64_t tree_nodes_;
  std::vector<std::uint64_t> containers_;  // where each begins, and the end
};

}  // namespace weft
