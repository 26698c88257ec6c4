// lineage/<model>/versions.tsv: a line for each live version of a model, oldest first. Its text changes with each
// publish, tag and removal, and when bytes get another owner, so each open renders it again.
#pragma once

#include <memory>

#include "vfs/subtree.h"

namespace weft {

// Any thread.
class VersionsTable final : public Subtree {
 public:
  explicit VersionsTable(Store& store) : store_(store) {}

  Result<Attr> attr_of(ModelId model);
  static DirEntry bare(ModelId model);

  Result<Attr> attr(const MountInode& inode) override;
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override;

 private:
  Store& store_;
};

}  // namespace weft
