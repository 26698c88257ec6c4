// The nodes of a data set's version (weft/dataset_tree.h): published files below datasets/, records below records/.
// Versions serves the large published files. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/lru_cache.h"
#include "vfs/subtree.h"
#include "vfs/versions.h"
#include "weft/dataset_tree.h"

namespace weft {

class Datasets final : public Subtree {
 public:
  explicit Datasets(Versions& versions) : versions_(versions) {}

  Result<Attr> attr(const MountInode& inode) override;
  Result<Attr> lookup(const MountInode& dir, std::string_view name) override;
  Result<DirPage> list(const MountInode& dir, ListPlace from) override;
  Result<Ino> parent(const MountInode& dir) override;
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override;
  Result<FileVersions> versions(const MountInode& inode) override { return FileVersions{inode.row.version, 0}; }
  bool assembled(const MountInode& inode) override { return versions_.assembled(inode); }
  Result<std::vector<Place>> places(const MountInode& inode) override { return versions_.places(inode); }
  void trim();

 private:
  static constexpr std::chrono::seconds kKeptFor{10};
  static constexpr std::size_t kSourcesMax = 64;  // each holds some descriptors
  static constexpr std::size_t kMadeBytesMax = 16U << 20U;

  using Version = std::shared_ptr<const TreeVersion>;
  struct Source {
    std::shared_ptr<OpenFile> file;
  };

  // For a node that is no published file.
  Result<Attr> attr_of(const Version& version, std::uint64_t number, const DatasetNode& node);
  Result<std::shared_ptr<const MadeFile>> made(const Version& version, std::uint64_t number);
  Result<std::shared_ptr<OpenFile>> source(const Version& version, std::uint32_t file);

  Versions& versions_;
  LruCache<Source> sources_{kSourcesMax};   // whole files, of which nodes are parts
  LruCache<MadeFile> made_{kMadeBytesMax};  // by inode number: stat and open compute a file once
};

}  // namespace weft
