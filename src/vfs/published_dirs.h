// The tree of datasets/NAME/V: the large published files, which are in the version's tree, and the small ones, which
// are in the file table. A directory of the tree and the table has the number of the tree's node.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "vfs/dataset_dir.h"
#include "weft/model/tree.h"

namespace weft {

// Serves the directories and the small files. VersionFiles serves the large files.
class PublishedDirs final : public DatasetDir {
 public:
  using DatasetDir::DatasetDir;

  Result<Attr> attr(const MountInode& inode) override;
  Result<Attr> lookup(const MountInode& inode, std::string_view name) override;
  Result<DirPage> list(const MountInode& inode, ListPlace from) override;
  Result<Ino> parent(const MountInode& inode) override;
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override;
  Result<std::optional<Digest>> sha256_of(const MountInode& inode) override;

 private:
  struct Dir;
  struct Listing;
  Result<Dir> directory(const MountInode& inode);
  // Returns the index of a small file in the file table; nothing for a directory.
  static Result<std::optional<std::uint64_t>> small_file(const MountInode& inode, const Numbered& at,
                                                         const DatasetTablePointer& table);
  // Returns the bundle's part that is a small file; nothing for a directory.
  Result<std::optional<FilePart>> small_part(const MountInode& inode, const Numbered& at);
};

// Returns the path of a published file or directory by its number, counted from the version's first number; "" for the
// root. Errc::not_found: the number is of something else.
Result<std::string> path_of_number(const TreeVersion& version, std::uint64_t number);
// Returns the path of a published node of the version's tree; "" for the root.
std::string path_in_tree(const VersionTree& tree, std::uint32_t node);
// Returns the published node of a path; "" is the root.
std::optional<std::uint32_t> node_at(const VersionTree& tree, std::string_view path);

}  // namespace weft
