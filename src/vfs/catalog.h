// The directories that name versions, in each of the trees models/, layers/, tensors/, datasets/, records/ and
// lineage/: namespaces, models and data sets, `latest` and tags. Their entries change with each publish, tag and
// removal. A listing is read in pages, and may mix what is there before and after a commit; every other answer is of
// one snapshot. tree_look.h answers for their entries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfs/numbers.h"
#include "vfs/subtree.h"
#include "vfs/versions_table.h"

namespace weft {

class Catalog final : public Subtree {
 public:
  Catalog(Store& store, VersionsTable& table) : store_(store), table_(table) {}

  // models/ or hub/, as long as the index has no row of it: the namespace "".
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
  VersionsTable& table_;  // the entry of a model in lineage/ that is no version
};

}  // namespace weft
