#include "vfs/subtree.h"

#include <fmt/core.h>

#include <utility>

#include "base/text.h"

namespace weft {

Result<Attr> Subtree::lookup(const MountInode& dir, std::string_view) {
  return not_a_directory(dir.ino);
}
Result<DirPage> Subtree::list(const MountInode& dir, ListPlace) {
  return not_a_directory(dir.ino);
}
Result<Ino> Subtree::parent(const MountInode& dir) {
  return not_a_directory(dir.ino);
}
Result<std::string> Subtree::readlink(const MountInode& inode) {
  return Error{Errc::invalid, fmt::format("inode {} is not a link", inode.ino)};
}
Result<FileVersions> Subtree::versions(const MountInode&) {
  return FileVersions{};
}
Result<Xattrs> Subtree::xattrs(const MountInode&) {
  return Xattrs{};
}
Result<std::optional<Digest>> Subtree::sha256_of(const MountInode& /*inode*/) {
  return std::optional<Digest>();
}

bool Subtree::assembled(const MountInode&) {
  return false;
}
Result<Place> Subtree::place(const MountInode& inode) {
  return no_inode(inode.ino);
}

Error no_inode(Ino ino) {
  return {Errc::not_found, fmt::format("no inode {}", ino)};
}
Error no_entry(std::string_view name) {
  return {Errc::not_found, fmt::format("no entry {}", printable(name))};
}
Error not_a_directory(Ino ino) {
  return {Errc::not_dir, fmt::format("inode {} is not a directory", ino)};
}
Error is_a_directory(Ino ino) {
  return {Errc::is_dir, fmt::format("inode {} is a directory", ino)};
}
Error is_a_link(Ino ino) {
  return {Errc::invalid, fmt::format("inode {} is a link", ino)};
}

Attr directory_attr(Ino ino, std::uint64_t mtime_ns) {
  Attr attr;
  attr.ino = ino;
  attr.type = FileType::directory;
  attr.mtime_ns = mtime_ns;
  return attr;
}

Attr version_dir_attr(const VersionRow& version, Ino ino) {
  Attr attr = directory_attr(ino, version.time_ns);
  attr.lasting_attr = true;
  attr.lasting_entries = true;
  return attr;
}

Attr text_attr(Ino ino, std::uint64_t mtime_ns, std::size_t bytes) {
  Attr attr;
  attr.ino = ino;
  attr.size = bytes;
  attr.blocks = bytes == 0 ? 0 : 1;
  attr.mtime_ns = mtime_ns;
  return attr;
}

Attr link_attr(Ino ino, std::uint64_t mtime_ns, std::size_t target_bytes) {
  Attr attr;
  attr.ino = ino;
  attr.type = FileType::link;
  attr.size = target_bytes;
  attr.mtime_ns = mtime_ns;
  return attr;
}

DirEntry bare_entry(std::string name, Ino ino, FileType type) {
  DirEntry entry;
  entry.name = std::move(name);
  entry.attr.ino = ino;
  entry.attr.type = type;
  return entry;
}

DirPage page_of(std::vector<DirEntry> all, ListPlace from) {
  for (std::size_t i = 0; i < all.size(); ++i) all[i].place = place_of(1, i + 1);
  std::erase_if(all, [from](const DirEntry& entry) { return entry.place <= from; });
  return {std::move(all), true};
}

}  // namespace weft
