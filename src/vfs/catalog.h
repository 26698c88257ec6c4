// The part of the mounted tree that names versions: models/, the directories of names, models, `latest` and tags. Its
// entries change with each publish, tag and removal. Each answer is of one snapshot.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfs/subtree.h"

namespace weft {

class Catalog final : public Subtree {
 public:
  explicit Catalog(Store& store) : store_(store) {}

  // models/ itself, which the index does not have: the namespace "".
  static InodeRow top();

  Result<Attr> attr(const MountInode& inode) override;
  Result<Attr> lookup(const MountInode& dir, std::string_view name) override;
  Result<std::vector<DirEntry>> list(const MountInode& dir) override;
  Result<Ino> parent(const MountInode& inode) override;
  Result<std::string> readlink(const MountInode& inode) override;
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override;

 private:
  Store& store_;
};

}  // namespace weft
