// A version as the mount caches it, and the contract through which other subtrees use the versions and their files.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dataset/dataset_numbers.h"
#include "vfs/numbers.h"
#include "vfs/subtree.h"
#include "weft/model/dataset.h"
#include "weft/model/manifest.h"
#include "weft/model/tree.h"
#include "weft/store/store.h"

namespace weft {

// Holds no lock of the store. Immutable except for sizes.
struct TreeVersion {
  struct Dataset {
    DatasetNumbers numbers;
    DatasetTables tables;
  };

  VersionRow row;
  LocalRow local;
  std::shared_ptr<const VersionTree> tree;
  std::optional<Dataset> dataset;  // nothing for a model
  // By node: the size of a generated file after its first use, else 0 (no generated file is empty).
  mutable std::vector<std::atomic<std::uint64_t>> sizes;

  const Manifest& manifest() const { return tree->manifest(); }
};
using TreeVersionPointer = std::shared_ptr<const TreeVersion>;

// One node of one version.
struct TreeNode {
  TreeVersionPointer version;
  std::uint32_t index = 0;

  const Node& node() const { return version->tree->node(index); }
  const File& file() const;   // of a published file or a view of a tensor
  std::string where() const;  // for messages
  Ino ino() const;
};

// The subtree of the published files. Any thread.
class VersionFiles : public Subtree {
 public:
  // `base` is the version's first inode number, or 0 if the caller needs none. A version that was undeleted after gc
  // had freed its content has other numbers than before.
  virtual Result<TreeVersionPointer> load(VersionId id, Ino base) = 0;
  // As attr(), for nodes below the roots, in their order.
  virtual Result<std::vector<Attr>> attrs_of(const TreeVersionPointer& version,
                                             std::span<const std::uint32_t> nodes) = 0;
  // Returns the directory of `tree` that contains the version's own directory.
  virtual Result<Ino> name_dir(const TreeVersion& version, InoKind tree) = 0;
  // Opens a file of the manifest, also one that no listing shows.
  virtual Result<std::shared_ptr<OpenFile>> open_file(const TreeVersionPointer& version, std::uint32_t file) = 0;
};

}  // namespace weft
