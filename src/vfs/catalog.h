// The directories that name versions, in each of the four trees models/, layers/, tensors/ and lineage/: namespaces,
// models, `latest` and tags. Their entries change with each publish, tag and removal. A listing is read in pages, and
// may mix what is there before and after a commit; every other answer is of one snapshot.
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
  Result<std::vector<DirEntry>> list(const MountInode& dir) override;
  Result<Ino> parent(const MountInode& inode) override;
  Result<std::string> readlink(const MountInode& inode) override;
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override;

 private:
  Store& store_;
  VersionsTable& table_;  // the entry of a model in lineage/ that is no version
};

// A version's own directory in `tree`, which is stored for models/.
Ino version_dir_ino(InoKind tree, VersionId version, const LocalRow& local);

}  // namespace weft
