// The directories of records/NAME/V that lead to containers with a record table. The manifest's record tables are
// sorted by path, so the tables below a directory are consecutive. Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "vfs/dataset_dir.h"

namespace weft {

inline constexpr std::string_view kSmallFilesName = "@files";  // a published path of this name hides it

class RecordDirs final : public DatasetDir {
 public:
  using DatasetDir::DatasetDir;

  Result<Attr> attr(const MountInode& inode) override;
  Result<Attr> lookup(const MountInode& inode, std::string_view name) override;
  Result<DirPage> list(const MountInode& inode, ListPlace from) override;
  Result<Ino> parent(const MountInode& inode) override;
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override;

 private:
  struct Dir;
  Result<Dir> directory(const MountInode& inode);
};

// Returns the directory with the entry of a container.
Result<Ino> parent_of_container(const TreeVersion& version, std::size_t container);

}  // namespace weft
