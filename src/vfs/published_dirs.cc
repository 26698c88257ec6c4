#include "vfs/published_dirs.h"

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/text.h"
#include "dataset/binary_search.h"
#include "vfs/dataset_dir.h"

namespace weft {

std::string path_in_tree(const VersionTree& tree, std::uint32_t node) {
  std::string path;
  for (; node != kPublishedRoot; node = tree.node(node).parent) {
    const std::string& name = tree.node(node).name;
    path = path.empty() ? name : name + '/' + path;
  }
  return path;
}

namespace {

// Errc::not_found: the node is below another root.
Result<std::string> path_of_node(const TreeVersion& version, std::uint32_t node) {
  std::uint32_t root = node;
  while (root >= kRootCount) root = version.tree->node(root).parent;
  if (root != kPublishedRoot) return no_inode(version.local.ino_base + node);
  return path_in_tree(*version.tree, node);
}

}  // namespace

Result<std::string> path_of_number(const TreeVersion& version, std::uint64_t number) {
  if (number < version.tree->size()) return path_of_node(version, static_cast<std::uint32_t>(number));
  if (!version.dataset || version.dataset->numbers.area_of(number) != DatasetArea::small)
    return no_inode(version.local.ino_base + number);
  WEFT_TRY(const DatasetTablePointer table, small_table_of(version));
  if (!table) return no_inode(version.local.ino_base + number);
  const FileTable& files = table->small_files()->table;
  number -= version.dataset->numbers.small();
  if (number < files.directories()) return files.path_of(number);
  number -= files.directories();
  return number < files.files() ? Result<std::string>(files.file_path(number)) : no_entry("a small file");
}

std::optional<std::uint32_t> node_at(const VersionTree& tree, std::string_view path) {
  std::uint32_t node = kPublishedRoot;
  if (path.empty()) return node;
  for (const std::string_view name : split(path, '/')) {
    const auto inner = tree.lookup(node, name);
    if (!inner) return std::nullopt;
    node = *inner;
  }
  return node;
}

// A directory of the version's tree, of the file table, or of both.
struct PublishedDirs::Dir {
  const VersionTree& tree() const { return *at.version->tree; }
  const FileTable& files() const { return table->small_files()->table; }
  std::uint64_t first_small() const { return at.version->dataset->numbers.small(); }
  Attr small_dir(std::uint64_t directory) const { return at.dir_attr(first_small() + directory); }
  Attr small_file(std::uint64_t file) const {
    return at.part_attr(first_small() + files().directories() + file, table->small_files()->part(file));
  }

  Numbered at;
  DatasetTablePointer table;  // nullptr if the version has no small files
  std::optional<std::uint32_t> node = {};
  std::optional<std::uint64_t> small = {};
};

Result<PublishedDirs::Dir> PublishedDirs::directory(const MountInode& inode) {
  WEFT_TRY(Numbered at, numbered(inode));
  WEFT_TRY(DatasetTablePointer table, at.small_table());
  Dir dir{std::move(at), std::move(table)};
  const std::uint64_t number = dir.at.number;
  if (number < dir.tree().size()) {
    const auto node = static_cast<std::uint32_t>(number);
    if (dir.tree().node(node).kind != NodeKind::dir) return not_a_directory(inode.ino);
    dir.node = node;
    if (dir.table) dir.small = dir.files().directory_at(path_in_tree(dir.tree(), node));
    return dir;
  }
  if (!dir.table || number - dir.first_small() >= dir.files().directories()) return not_a_directory(inode.ino);
  dir.small = number - dir.first_small();
  return dir;
}

Result<std::optional<std::uint64_t>> PublishedDirs::small_file(const MountInode& inode, const Numbered& at,
                                                               const DatasetTablePointer& table) {
  if (!table) return no_inode(inode.ino);
  const FileTable& files = table->small_files()->table;
  const std::uint64_t number = at.number - at.version->dataset->numbers.small();
  if (number < files.directories()) return std::optional<std::uint64_t>();
  if (number - files.directories() >= files.files()) return no_inode(inode.ino);
  return std::optional(number - files.directories());
}

// Needs no table for nodes of the version's tree.
Result<std::optional<FilePart>> PublishedDirs::small_part(const MountInode& inode, const Numbered& at) {
  if (at.number < at.version->tree->size()) return std::optional<FilePart>();
  WEFT_TRY(const DatasetTablePointer table, at.small_table());
  WEFT_TRY(const auto file, small_file(inode, at, table));
  return file ? std::optional(table->small_files()->part(*file)) : std::nullopt;
}

Result<std::optional<Digest>> PublishedDirs::sha256_of(const MountInode& inode) {
  WEFT_TRY(const Numbered at, numbered(inode));
  const std::span<const File> sums = files_of(at.version->manifest(), FileRole::sums);
  if (at.number < at.version->tree->size() || sums.empty()) return std::optional<Digest>();
  WEFT_TRY(const DatasetTablePointer table, at.small_table());
  WEFT_TRY(const auto file, small_file(inode, at, table));
  if (!file) return std::optional<Digest>();
  const auto number = static_cast<std::uint32_t>(sums.data() - at.version->manifest().files.data());
  WEFT_TRY(const auto digests, files_.open_part(at.version, {number, {*file * sizeof(Digest), sizeof(Digest)}}));
  Digest digest;
  WEFT_TRY(const std::size_t got, digests->read(0, std::as_writable_bytes(std::span(&digest, 1))));
  if (got != sizeof digest) return Error{Errc::corrupt, "the sums of small files: expected a digest for each file"};
  return std::optional(digest);
}

Result<Attr> PublishedDirs::attr(const MountInode& inode) {
  WEFT_TRY(const Numbered at, numbered(inode));
  WEFT_TRY(const auto part, small_part(inode, at));
  return part ? at.part_attr(at.number, *part) : at.dir_attr(at.number);
}

Result<std::shared_ptr<OpenFile>> PublishedDirs::open(const MountInode& inode) {
  WEFT_TRY(const Numbered at, numbered(inode));
  WEFT_TRY(const auto part, small_part(inode, at));
  if (!part) return is_a_directory(inode.ino);
  return files_.open_part(at.version, *part);
}

Result<Ino> PublishedDirs::parent(const MountInode& inode) {
  WEFT_TRY(const Numbered at, numbered(inode));
  if (at.number == kPublishedRoot) return files_.versions().name_dir(*at.version, InoKind::datasets);
  const VersionTree& tree = *at.version->tree;
  if (at.number < tree.size()) return at.ino(tree.node(static_cast<std::uint32_t>(at.number)).parent);
  WEFT_TRY(const Dir dir, directory(inode));
  const std::uint64_t above = dir.files().directory(*dir.small).parent;
  const auto node = node_at(tree, dir.files().path_of(above));
  return at.ino(node ? *node : dir.first_small() + above);
}

Result<Attr> PublishedDirs::lookup(const MountInode& inode, std::string_view name) {
  WEFT_TRY(const Dir dir, directory(inode));
  if (name.empty() || name.find('/') != name.npos) return no_entry(name);
  if (const auto node = dir.node ? dir.tree().lookup(*dir.node, name) : std::nullopt) {
    if (dir.tree().node(*node).kind == NodeKind::dir) return dir.at.dir_attr(*node);
    WEFT_TRY(const std::vector<Attr> attrs, files_.versions().attrs_of(dir.at.version, std::span(&*node, 1)));
    return attrs.front();
  }
  if (!dir.small) return no_entry(name);
  if (const auto found = dir.files().find_directory(*dir.small, name)) return dir.small_dir(*found);
  if (const auto found = dir.files().find_file(*dir.small, name)) return dir.small_file(*found);
  return no_entry(name);
}

// Merges three lists, each sorted by name: children in the version's tree, directories of the table, files of the
// table. A place is an entry of one list. The listing continues after the name of that entry in all three.
struct PublishedDirs::Listing {
  static constexpr std::uint64_t kTree = 0, kDirs = 1, kFiles = 2, kLists = 3;

  explicit Listing(const Dir& of) : dir(of) {
    if (dir.node) children = dir.tree().children(*dir.node);
    if (dir.small) small = dir.files().directory(*dir.small);
  }

  void go_behind(std::uint64_t place) {
    if (place == 0) return;
    const std::uint64_t list = (place - 1) % kLists;
    const std::uint64_t index = (place - 1) / kLists;
    const std::string_view name = index < count(list) ? this->name(list, index) : std::string_view();
    for (std::uint64_t one = 0; one < kLists; ++one)
      next[one] = index < count(list)
                      ? first_that(count(one), [&](std::uint64_t i) { return this->name(one, i) > name; })
                      : count(one);
  }

  // Adds the next entry to the page. A large file is completed later: its node is added to `nodes`. False at the end.
  bool add_next(DirPage& page, std::vector<std::uint32_t>& nodes) {
    std::optional<std::uint64_t> first;
    for (std::uint64_t list = 0; list < kLists; ++list)
      if (next[list] < count(list) && (!first || next_name(list) < next_name(*first))) first = list;
    if (!first) return false;
    const std::uint64_t index = next[*first];
    page.entries.push_back(entry(*first, index));
    if (!page.entries.back().attr_known) nodes.push_back(children[index]);
    // A directory that is in two lists is one entry.
    for (std::uint64_t list = 0; list < kLists; ++list)
      if (next[list] < count(list) && next_name(list) == page.entries.back().name) ++next[list];
    return true;
  }

  std::uint64_t count(std::uint64_t list) const {
    if (list == kTree) return children.size();
    return list == kDirs ? small.directories : small.files;
  }
  std::string_view name(std::uint64_t list, std::uint64_t index) const {
    if (list == kTree) return dir.tree().node(children[index]).name;
    return list == kDirs ? dir.files().directory_name(small.first_directory + index)
                         : dir.files().name(small.first_file + index);
  }
  std::string_view next_name(std::uint64_t list) const { return name(list, next[list]); }
  DirEntry entry(std::uint64_t list, std::uint64_t index) const {
    DirEntry out{std::string(name(list, index)), {}, true, place_of(1, 1 + index * kLists + list)};
    if (list == kDirs) out.attr = dir.small_dir(small.first_directory + index);
    if (list == kFiles) out.attr = dir.small_file(small.first_file + index);
    if (list == kTree && dir.tree().node(children[index]).kind == NodeKind::dir)
      out.attr = dir.at.dir_attr(children[index]);
    else if (list == kTree)
      out.attr_known = false;
    return out;
  }

  const Dir& dir;
  std::span<const std::uint32_t> children;
  FileTable::Directory small;
  std::array<std::uint64_t, kLists> next{};
};

Result<DirPage> PublishedDirs::list(const MountInode& inode, ListPlace from) {
  WEFT_TRY(const Dir dir, directory(inode));
  Listing listing(dir);
  listing.go_behind(number_of(from));
  DirPage page;
  std::vector<std::uint32_t> nodes;
  while (page.entries.size() < kEntriesPerPage && !page.last) page.last = !listing.add_next(page, nodes);
  WEFT_TRY(const std::vector<Attr> attrs, files_.versions().attrs_of(dir.at.version, nodes));
  auto next = attrs.begin();
  for (DirEntry& entry : page.entries)
    if (!std::exchange(entry.attr_known, true)) entry.attr = *next++;
  return page;
}

}  // namespace weft
