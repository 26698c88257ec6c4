// Tensor views: .npy files. All versions share one inode for each (content, element type, shape).
#pragma once

#include <memory>

#include "reading/cold_file.h"
#include "reading/prefetch.h"
#include "vfs/subtree.h"
#include "vfs/versions.h"

namespace weft {

class Views final : public Subtree {
 public:
  // `prefetcher` reads ahead in the files that are opened here, and outlives them.
  Views(Store& store, Prefetcher& prefetcher, Versions& versions, const Cold& cold)
      : store_(store), prefetcher_(prefetcher), versions_(versions), cold_(cold) {}

  Result<Attr> attr(const MountInode& inode) override;
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override;
  Result<FileVersions> versions(const MountInode& inode) override;
  Result<Xattrs> xattrs(const MountInode& inode) override;  // "user.weft.dtype", ".shape", ".hash"

 private:
  Result<std::shared_ptr<OpenFile>> open_local(const InodeRow& row);
  Result<std::shared_ptr<OpenFile>> open_absent(const InodeRow& row);
  Result<std::shared_ptr<OpenFile>> open_scattered(const InodeRow& row);

  Store& store_;
  Prefetcher& prefetcher_;
  Versions& versions_;
  const Cold cold_;
};

}  // namespace weft
