#include "vfs/record_dirs.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "vfs/published_dirs.h"

namespace weft {
namespace {

std::span<const File> tables_of(const TreeVersion& version) {
  return files_of(version.manifest(), FileRole::record_table);
}

bool has_small_files(const TreeVersion& version) {
  return version.dataset->numbers.containers() > tables_of(version).size();
}

std::uint64_t number_of_dir(const TreeVersion& version, std::uint32_t node) {
  return node == kPublishedRoot ? kRecordsRoot : version.dataset->numbers.records() + node;
}

}  // namespace

struct RecordDirs::Dir {
  struct Child {
    std::string name;
    std::uint64_t number = 0;
    std::size_t next = 0;  // the first table after the entry
  };

  std::size_t first_table(std::string_view at_least) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(tables, at_least, {}, &File::path) - tables.begin());
  }
  bool has(std::size_t table) const { return table < tables.size() && tables[table].path.starts_with(prefix); }
  // Returns the record table of the container `name`, or the first table below the directory `name`.
  std::optional<std::size_t> find(std::string_view name) const {
    const std::string path = prefix + std::string(name);
    std::size_t table = first_table(path);
    if (table < tables.size() && tables[table].path == path) return table;
    table = first_table(path + '/');
    if (table < tables.size() && tables[table].path.starts_with(path + '/')) return table;
    return std::nullopt;
  }
  // Returns the entry that is the container of `table`, or leads to it.
  Child child(std::size_t table) const {
    const std::string_view rest = std::string_view(tables[table].path).substr(prefix.size());
    const std::size_t slash = rest.find('/');
    if (slash == rest.npos) return {std::string(rest), at.version->dataset->numbers.container(table), table + 1};
    const std::string name(rest.substr(0, slash));
    const auto inner = at.version->tree->lookup(node, name);                // exists: it leads to a published file
    const std::string behind = prefix + name + static_cast<char>('/' + 1);  // sorts after all paths below the directory
    return {name, number_of_dir(*at.version, inner.value_or(kPublishedRoot)), first_table(behind)};
  }
  // Returns the entry of the small files, if this directory has it.
  std::optional<Child> small_files() const {
    if (at.number != kRecordsRoot || !has_small_files(*at.version) || find(kSmallFilesName)) return std::nullopt;
    return Child{std::string(kSmallFilesName), at.version->dataset->numbers.container(tables.size()),
                 tables.size() + 1};
  }

  Numbered at;
  std::span<const File> tables;
  std::uint32_t node = kPublishedRoot;  // in the version's tree
  std::string prefix = {};              // "" or "a/b/"
};

Result<RecordDirs::Dir> RecordDirs::directory(const MountInode& inode) {
  WEFT_TRY(Numbered at, numbered(inode));
  const TreeVersion& version = *at.version;
  Dir dir{at, tables_of(version)};
  if (at.number == kRecordsRoot) return dir;
  const std::uint64_t node = at.number - version.dataset->numbers.records();
  if (node < kRootCount || node >= version.tree->size()) return no_inode(inode.ino);
  dir.node = static_cast<std::uint32_t>(node);
  dir.prefix = path_in_tree(*version.tree, dir.node) + '/';
  return dir.has(dir.first_table(dir.prefix)) ? Result<Dir>(std::move(dir)) : no_inode(inode.ino);
}

Result<Attr> RecordDirs::attr(const MountInode& inode) {
  WEFT_TRY(const Dir dir, directory(inode));
  return dir.at.dir_attr(dir.at.number);
}

Result<Attr> RecordDirs::lookup(const MountInode& inode, std::string_view name) {
  WEFT_TRY(const Dir dir, directory(inode));
  if (name.empty() || name.find('/') != name.npos) return no_entry(name);
  if (const auto table = dir.find(name)) return dir.at.dir_attr(dir.child(*table).number);
  const auto small = name == kSmallFilesName ? dir.small_files() : std::nullopt;
  return small ? dir.at.dir_attr(small->number) : Result<Attr>(no_entry(name));
}

// A place is the number of the first table after an entry. @files comes after all tables.
Result<DirPage> RecordDirs::list(const MountInode& inode, ListPlace from) {
  WEFT_TRY(const Dir dir, directory(inode));
  DirPage page;
  const auto add = [&](const Dir::Child& child) {
    page.entries.push_back({child.name, dir.at.dir_attr(child.number), true, place_of(1, child.next)});
    return child.next;
  };
  std::uint64_t next = std::max<std::uint64_t>(number_of(from), dir.first_table(dir.prefix));
  while (dir.has(next) && page.entries.size() < kEntriesPerPage) next = add(dir.child(next));
  if (page.entries.size() == kEntriesPerPage) return page;
  if (const auto small = dir.small_files(); small && next <= dir.tables.size()) add(*small);
  page.last = true;
  return page;
}

Result<Ino> RecordDirs::parent(const MountInode& inode) {
  WEFT_TRY(const Dir dir, directory(inode));
  const TreeVersion& version = *dir.at.version;
  if (dir.at.number == kRecordsRoot) return files_.versions().name_dir(version, InoKind::records);
  return dir.at.ino(number_of_dir(version, version.tree->node(dir.node).parent));
}

Result<Ino> parent_of_container(const TreeVersion& version, std::size_t container) {
  const auto tables = tables_of(version);
  const Ino base = version.local.ino_base;
  if (container >= tables.size()) return base + kRecordsRoot;
  const auto file = node_at(*version.tree, tables[container].path);
  if (!file) return no_inode(base + version.dataset->numbers.container(container));
  return base + number_of_dir(version, version.tree->node(*file).parent);
}

Result<std::shared_ptr<OpenFile>> RecordDirs::open(const MountInode& inode) {
  return is_a_directory(inode.ino);
}

}  // namespace weft
