#include "vfs/container_dirs.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "reading/open_file.h"
#include "vfs/record_dirs.h"

namespace weft {
namespace {

using Fixed = ContainerNumbers::Fixed;

constexpr std::uint64_t number_of(Fixed entry) {
  return static_cast<std::uint64_t>(entry);
}

constexpr std::uint64_t kPart = ContainerNumbers::share({});
constexpr std::uint64_t kFirstPath = ContainerNumbers::path(0);
constexpr std::string_view kNpy = ".npy";

// The entries of a container's own directory, by name.
constexpr std::array<std::pair<std::string_view, std::uint64_t>, 6> kEntries{
    {{"files", number_of(Fixed::files)},
     {"index.npy", number_of(Fixed::index_npy)},
     {"keys.txt", number_of(Fixed::keys_txt)},
     {"order", number_of(Fixed::order)},
     {"part", kPart},
     {"skipped.txt", number_of(Fixed::skipped_txt)}}};

bool is_share(std::uint64_t number) {
  return number >= ContainerNumbers::kFixed && number < kFirstPath;
}

// Parses a number that is written as it would be printed: without zeros or a sign before it.
std::optional<std::uint64_t> plain_number(std::string_view text) {
  const auto number = parse_u64(text);
  return number && std::to_string(*number) == text ? number : std::nullopt;
}

// Returns the share, or the directory of shares, with this name in `dir`. `in_order`: the directory is order/ itself.
std::optional<ShareName> inner_share(ShareName dir, bool in_order, std::string_view name) {
  if (dir.parts) {
    if (!name.ends_with(kNpy)) return std::nullopt;
    dir.rank = plain_number(name.substr(0, name.size() - kNpy.size()));
    return dir.rank && *dir.rank < *dir.parts ? std::optional(dir) : std::nullopt;
  }
  const auto number = plain_number(name);
  if (!number) return std::nullopt;
  if (in_order) {
    dir.seed = number;
    return *number < kShareSeeds ? std::optional(dir) : std::nullopt;
  }
  dir.parts = number;
  return *number >= 1 && *number <= kSharePartsMax ? std::optional(dir) : std::nullopt;
}

std::uint64_t parent_of_share(ShareName name) {
  if (name.rank)
    name.rank.reset();
  else if (name.parts)
    name.parts.reset();
  else
    return number_of(name.seed ? Fixed::order : Fixed::dir);
  return ContainerNumbers::share(name);
}

class GeneratedFile final : public OpenFile {
 public:
  explicit GeneratedFile(std::shared_ptr<const MadeFile> made) : made_(std::move(made)) {}
  std::uint64_t size() const override { return made_->size; }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset >= made_->size || out.empty()) return std::size_t{0};
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), made_->size - offset));
    made_->read(offset, out.first(count));
    return count;
  }
  int backing_fd() const override { return -1; }

 private:
  const std::shared_ptr<const MadeFile> made_;
};

std::size_t components_in(std::string_view path) {
  return path.empty() ? 0 : 1 + static_cast<std::size_t>(std::ranges::count(path, '/'));
}

// Returns the first `count` components of a path; nothing if the path has no more components than that.
std::optional<std::string_view> first_components(std::string_view path, std::uint64_t count) {
  std::size_t end = path.find('/');
  for (; end != path.npos && count > 1; --count) end = path.find('/', end + 1);
  return end == path.npos ? std::nullopt : std::optional(path.substr(0, end));
}

}  // namespace

// One container with its table. Numbers count from the container's first number (ContainerNumbers).
struct ContainerDirs::Container {
  // A number of the container: a directory, a part of a file of the manifest, or a generated file.
  struct Node {
    enum class Kind : std::uint8_t { dir, part, made };
    Kind kind = Kind::dir;
    FilePart part = {};
  };

  const RecordTable& rows() const { return records->table; }
  bool has(std::uint64_t entry) const;  // an entry of the container's own directory
  Result<Node> own_node(std::uint64_t of) const;
  Node row_node(std::uint64_t row) const { return {Node::Kind::part, {records->container, rows().row(row)}}; }
  Result<Node> node(std::uint64_t of) const;
  // Returns the path of a directory below files/; "" for files/ itself.
  Result<std::string> path_of_dir(std::uint64_t of) const;
  std::uint64_t number_in(std::string_view dir, const RecordTable::Entry& entry) const;
  Result<std::uint64_t> find(std::string_view name) const;
  Result<std::uint64_t> parent() const;
  MadeFile make(std::uint64_t of) const;
  Result<Attr> attr(std::uint64_t of, const Node& node, DatasetFiles& files) const;
  Ino ino(std::uint64_t of) const { return at.ino(first + of); }
  std::shared_ptr<const MadeFile> made(std::uint64_t of, DatasetFiles& files) const {
    return files.made(ino(of), [&] { return make(of); });
  }
  Error no_number(std::uint64_t of) const { return no_inode(ino(of)); }

  Numbered at;
  std::uint64_t first = 0;   // number of the container's own directory
  std::uint64_t number = 0;  // of the inode that the operation is for
  DatasetTablePointer table = {};
  const SmallFiles* small = nullptr;          // nullptr: the table is a container's
  const ContainerRecords* records = nullptr;  // nullptr: the table lists small files
};

bool ContainerDirs::Container::has(std::uint64_t entry) const {
  if (entry == number_of(Fixed::files)) return records != nullptr && rows().has_files();
  if (entry == number_of(Fixed::index_npy)) return records != nullptr;
  if (entry == number_of(Fixed::skipped_txt)) return records != nullptr && rows().left_out() != 0;
  return true;
}

// Returns the container's own directory, or one of its entries.
Result<ContainerDirs::Container::Node> ContainerDirs::Container::own_node(std::uint64_t of) const {
  const auto found = std::ranges::find(kEntries, of, &std::pair<std::string_view, std::uint64_t>::second);
  if (of != number_of(Fixed::dir) && (found == kEntries.end() || !has(of))) return no_number(of);
  const auto part = [this](Range range) { return Node{Node::Kind::part, {records->table_file, range}}; };
  if (of == number_of(Fixed::index_npy)) return part(rows().index_npy());
  if (of == number_of(Fixed::skipped_txt)) return part(rows().skipped_txt());
  if (of != number_of(Fixed::keys_txt)) return Node();
  return records == nullptr ? Node{Node::Kind::made} : part(rows().keys_txt());
}

Result<ContainerDirs::Container::Node> ContainerDirs::Container::node(std::uint64_t of) const {
  if (is_share(of)) return Node{ContainerNumbers::share_of(of).rank ? Node::Kind::made : Node::Kind::dir};
  if (of < kFirstPath) return own_node(of);
  const std::uint64_t path = (of - kFirstPath) / ContainerNumbers::kOfPath;
  if (of != ContainerNumbers::path(path)) {
    WEFT_CHECK(path_of_dir(of));
    return Node();
  }
  if (records == nullptr || path >= rows().paths()) return no_number(of);
  return row_node(rows().row_of(path));
}

Result<std::string> ContainerDirs::Container::path_of_dir(std::uint64_t of) const {
  if (of == number_of(Fixed::files) && has(of)) return std::string();
  if (of < kFirstPath) return not_a_directory(ino(of));
  const std::uint64_t path = (of - kFirstPath) / ContainerNumbers::kOfPath;
  const std::uint64_t components = (of - kFirstPath) % ContainerNumbers::kOfPath;
  if (records == nullptr || path >= rows().paths()) return no_number(of);
  if (components == 0) return not_a_directory(ino(of));
  const auto dir = first_components(rows().path(path), components);
  return dir ? Result<std::string>(std::string(*dir)) : no_number(of);
}

// Returns the number of an entry of the directory `dir` below files/.
std::uint64_t ContainerDirs::Container::number_in(std::string_view dir, const RecordTable::Entry& entry) const {
  const auto components = static_cast<unsigned>(entry.row ? 0 : components_in(dir) + 1);
  return ContainerNumbers::path(entry.first, components);
}

// Returns the directory above this one, which is not the container's own.
Result<std::uint64_t> ContainerDirs::Container::parent() const {
  if (is_share(number)) return parent_of_share(ContainerNumbers::share_of(number));
  if (number < kFirstPath) return number_of(Fixed::dir);
  WEFT_TRY(const std::string path, path_of_dir(number));
  const auto [above, name] = split_name(path);
  if (above.empty()) return number_of(Fixed::files);
  const auto [grand, parent] = split_name(above);
  const auto found = rows().lookup(grand, parent);
  return found ? Result<std::uint64_t>(number_in(grand, *found)) : no_number(number);
}

// Returns the entry of this directory with this name.
Result<std::uint64_t> ContainerDirs::Container::find(std::string_view name) const {
  if (number == number_of(Fixed::dir)) {
    const auto found = std::ranges::find(kEntries, name, &std::pair<std::string_view, std::uint64_t>::first);
    return found != kEntries.end() && has(found->second) ? Result<std::uint64_t>(found->second) : no_entry(name);
  }
  if (is_share(number) || number == number_of(Fixed::order)) {
    const ShareName above = is_share(number) ? ContainerNumbers::share_of(number) : ShareName();
    if (above.rank) return not_a_directory(ino(number));
    const auto share = inner_share(above, !is_share(number), name);
    return share ? Result<std::uint64_t>(ContainerNumbers::share(*share)) : no_entry(name);
  }
  WEFT_TRY(const std::string path, path_of_dir(number));
  const auto found = rows().lookup(path, name);
  return found ? Result<std::uint64_t>(number_in(path, *found)) : no_entry(name);
}

// Makes a file of the kind `made`.
MadeFile ContainerDirs::Container::make(std::uint64_t of) const {
  if (is_share(of))
    return make_share_file(records == nullptr ? small->table.shares() : rows().shares(),
                           ContainerNumbers::share_of(of));
  MadeFile keys;
  keys.size = small->table.keys_bytes();
  keys.read = [kept = table](std::uint64_t offset, std::span<std::byte> out) {
    kept->small_files()->table.read_keys(offset, out);
  };
  return keys;
}

Result<Attr> ContainerDirs::Container::attr(std::uint64_t of, const Node& node, DatasetFiles& files) const {
  if (node.kind == Node::Kind::dir) return at.dir_attr(first + of);
  if (node.kind == Node::Kind::part) return at.part_attr(first + of, node.part);
  return at.file_attr(first + of, made(of, files)->size);
}

Result<ContainerDirs::Container> ContainerDirs::container(const MountInode& inode) {
  WEFT_TRY(Numbered at, numbered(inode));
  const TreeVersion& version = *at.version;
  const DatasetNumbers& numbers = version.dataset->numbers;
  const std::size_t i = numbers.container_of(at.number);
  Container out{at, numbers.container(i), at.number - numbers.container(i)};
  const auto tables = files_of(version.manifest(), FileRole::record_table);
  if (i < tables.size()) {
    const auto file = static_cast<std::uint32_t>(&tables[i] - version.manifest().files.data());
    WEFT_TRY(out.table, version.dataset->tables(file));
  } else {
    WEFT_TRY(out.table, at.small_table());  // @files is the last container
  }
  out.small = out.table->small_files();
  out.records = out.table->records();
  return out;
}

bool ContainerDirs::is_own_dir(const Numbered& at) {
  const DatasetNumbers& numbers = at.version->dataset->numbers;
  return at.number == numbers.container(numbers.container_of(at.number));
}

// Needs no table for a container's own directory.
Result<Attr> ContainerDirs::attr(const MountInode& inode) {
  WEFT_TRY(const Numbered at, numbered(inode));
  if (is_own_dir(at)) return at.dir_attr(at.number);
  WEFT_TRY(const Container container, this->container(inode));
  WEFT_TRY(const Container::Node node, container.node(container.number));
  return container.attr(container.number, node, files_);
}

Result<Ino> ContainerDirs::parent(const MountInode& inode) {
  WEFT_TRY(const Numbered at, numbered(inode));
  if (is_own_dir(at)) return parent_of_container(*at.version, at.version->dataset->numbers.container_of(at.number));
  WEFT_TRY(const Container container, this->container(inode));
  WEFT_TRY(const std::uint64_t parent, container.parent());
  return container.ino(parent);
}

Result<Attr> ContainerDirs::lookup(const MountInode& inode, std::string_view name) {
  WEFT_TRY(const Container container, this->container(inode));
  if (name.empty() || name.find('/') != name.npos) return no_entry(name);
  WEFT_TRY(const std::uint64_t found, container.find(name));
  WEFT_TRY(const Container::Node node, container.node(found));
  return container.attr(found, node, files_);
}

// Shares are not listed: there are too many.
Result<DirPage> ContainerDirs::list(const MountInode& inode, ListPlace from) {
  WEFT_TRY(const Container container, this->container(inode));
  const std::uint64_t number = container.number;
  DirPage page;
  const auto add = [&](std::string_view name, std::uint64_t of, const Container::Node& node,
                       std::uint64_t place) -> Status {
    WEFT_TRY(const Attr attr, container.attr(of, node, files_));
    page.entries.push_back({std::string(name), attr, true, place_of(1, place)});
    return {};
  };
  page.last = true;
  if (number == number_of(Fixed::dir)) {
    for (std::uint64_t i = number_of(from); i < kEntries.size(); ++i) {
      const auto [name, of] = kEntries[i];
      if (!container.has(of)) continue;
      WEFT_TRY(const Container::Node node, container.own_node(of));
      WEFT_CHECK(add(name, of, node, i + 1));
    }
    return page;
  }
  if (is_share(number) && ContainerNumbers::share_of(number).rank) return not_a_directory(inode.ino);
  if (is_share(number) || number == number_of(Fixed::order)) return page;
  WEFT_TRY(const std::string path, container.path_of_dir(number));
  auto entry = container.rows().entry_at(path, number_of(from));
  for (; entry && page.entries.size() < kEntriesPerPage; entry = container.rows().entry_at(path, entry->next)) {
    const auto node = entry->row ? container.row_node(*entry->row) : Container::Node();
    WEFT_CHECK(add(entry->name, container.number_in(path, *entry), node, entry->next));
  }
  page.last = !entry;
  return page;
}

Result<std::shared_ptr<OpenFile>> ContainerDirs::open(const MountInode& inode) {
  WEFT_TRY(const Container container, this->container(inode));
  WEFT_TRY(const Container::Node node, container.node(container.number));
  switch (node.kind) {
    case Container::Node::Kind::dir:
      break;
    case Container::Node::Kind::part:
      return files_.open_part(container.at.version, node.part);
    case Container::Node::Kind::made:
      return std::shared_ptr<OpenFile>(std::make_shared<GeneratedFile>(container.made(container.number, files_)));
  }
  return is_a_directory(inode.ino);
}

}  // namespace weft
