// The directories that name versions, in each of the trees models/, layers/, tensors/, datasets/, records/ and
// lineage/: namespaces, models and data sets, `latest` and tags. Their entries change with each publish, tag and
// removal. A listing is read in pages, and may mix the states before and after a commit; every other answer is of one
// snapshot. tree_attrs.h computes the attributes of their entries.
#pragma once

#include <string>
#include <string_view>

#include "vfs/numbers.h"
#include "vfs/subtree.h"
#include "vfs/versions_table.h"

namespace weft {

class Catalog final : public Subtree {
 public:
  Catalog(Store& store, VersionsTable& table) : store_(store), table_(table) {}

  // Returns the row of models/ or hub/ while the index has none: the namespace "".
  static InodeRow top(Ino stored);

  Result<Attr> attr(const MountInode& inode) override;
  Result<Attr> lookup(const MountInode& dir, std::string_view name) override;
  Result<DirPage> list(const MountInode& dir, ListPlace from) override;
  Result<Ino> parent(const MountInode& inode) override;
  Result<std::string> readlink(const MountInode& inode) override;
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override;

 private:
  Result<DirPage> list_namespace(const MountInode& dir, ListPlace from);
  Result<DirPage> list_model(const MountInode& dir, ListPlace from);

  Store& store_;
  VersionsTable& table_;  // for versions.tsv in the models of lineage/
};

}  // namespace weft
