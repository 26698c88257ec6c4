// One kind of directory of the mount, with its contents. StoreVfs (vfs.cc) finds the subtree of an inode number and
// passes the operation on; start reading there. A new kind of directory is a new class with these methods and one line
// in StoreVfs::owner_of().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/programs/vfs.h"
#include "weft/store/snapshot.h"
#include "weft/store/store.h"

namespace weft {

struct MountInode {
  Ino ino = 0;
  // The index's row of the stored number that `ino` is or contains (numbers.h).
  InodeRow row{};
  std::optional<IndexState> state{};  // the index had the row in this state
  std::optional<Attr> attr{};         // the attributes in that state, if known
};

// A page of a listing. The attributes of an entry take at most kRowsPerEntry rows of the index, so that a page reads no
// more rows than one snapshot allows.
inline constexpr std::size_t kRowsPerEntry = 4;
inline constexpr std::size_t kEntriesPerPage = limits::kRowsPerSnapshot / kRowsPerEntry;

// The place of an entry: the part of the directory (from 1 on, in the order of the listing), and the entry's number in
// that part.
constexpr ListPlace place_of(unsigned part, std::uint64_t number) {
  return kFirstPlace * part + number;
}
constexpr unsigned part_of(ListPlace place) {
  return static_cast<unsigned>(place / kFirstPlace);
}
constexpr std::uint64_t number_of(ListPlace place) {
  return place % kFirstPlace;
}

// Any thread. A method may load a manifest from another node, so the caller holds no Snapshot.
class Subtree {
 public:
  virtual ~Subtree() = default;

  virtual Result<Attr> attr(const MountInode& inode) = 0;
  virtual Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) = 0;
  // By default Errc::not_dir.
  virtual Result<Attr> lookup(const MountInode& dir, std::string_view name);
  virtual Result<DirPage> list(const MountInode& dir, ListPlace from);
  virtual Result<Ino> parent(const MountInode& dir);
  // By default Errc::invalid.
  virtual Result<std::string> readlink(const MountInode& inode);
  // The versions that an open file needs to stay readable. By default none.
  virtual Result<FileVersions> versions(const MountInode& inode);

  // As the methods of Vfs. By default there are no extended attributes, and no published files.
  virtual Result<Xattrs> xattrs(const MountInode& inode);
  virtual Result<std::optional<Digest>> sha256_of(const MountInode& inode);
  virtual bool assembled(const MountInode& inode);
  virtual Result<Place> place(const MountInode& inode);
};

Error no_inode(Ino ino);
Error no_entry(std::string_view name);
Error not_a_directory(Ino ino);
Error is_a_directory(Ino ino);
Error is_a_link(Ino ino);

// Attributes that subtrees share. The link count of a directory is 1: subdirectories are not counted.
Attr directory_attr(Ino ino, std::uint64_t mtime_ns);
Attr version_dir_attr(const VersionRow& version, Ino ino);
// For a generated text of so many bytes.
Attr text_attr(Ino ino, std::uint64_t mtime_ns, std::size_t bytes);
Attr link_attr(Ino ino, std::uint64_t mtime_ns, std::size_t target_bytes);
DirEntry bare_entry(std::string name, Ino ino, FileType type);

// Returns a page of a short directory that has the entries `all`. Their order, which never changes, gives the places.
DirPage page_of(std::vector<DirEntry> all, ListPlace from);

}  // namespace weft
