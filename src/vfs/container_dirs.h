// The trees of records/NAME/V/CONTAINER and records/NAME/V/@files. Any thread.
#pragma once

#include <memory>
#include <string_view>

#include "vfs/dataset_dir.h"

namespace weft {

class ContainerDirs final : public DatasetDir {
 public:
  using DatasetDir::DatasetDir;

  Result<Attr> attr(const MountInode& inode) override;
  Result<Attr> lookup(const MountInode& inode, std::string_view name) override;
  Result<DirPage> list(const MountInode& inode, ListPlace from) override;
  Result<Ino> parent(const MountInode& inode) override;
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override;

 private:
  struct Container;
  static bool is_own_dir(const Numbered& at);
  Result<Container> container(const MountInode& inode);
};

}  // namespace weft
