#include "dataset/published_dirs.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/text.h"
#include "dataset/binary_search.h"
#include "dataset/errors.h"

namespace weft {

std::string path_in_tree(const VersionTree& tree, std::uint32_t node) {
  std::string path;
  for (; node != kPublishedRoot; node = tree.node(node).parent) {
    const std::string& name = tree.node(node).name;
    path = path.empty() ? name : name + '/' + path;
  }
  return path;
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

std::uint64_t PublishedDirs::number_of_dir(std::uint64_t small) const {
  if (const auto node = node_at(tree_, small_->table.path_of(small))) return *node;
  return first_small_ + small;
}

DatasetEntry PublishedDirs::tree_entry(std::uint32_t node) const {
  const Node& found = tree_.node(node);
  DatasetEntry entry{node, found.name};
  if (found.kind == NodeKind::file)
    entry.node = {DatasetNode::Kind::published, found.file, {0, tree_.manifest().files[found.file].size}};
  return entry;
}

DatasetEntry PublishedDirs::small_dir_entry(std::uint64_t small) const {
  return {first_small_ + small, std::string(small_->table.directory_name(small))};
}

DatasetEntry PublishedDirs::small_file_entry(std::uint64_t file) const {
  return {first_small_ + small_->table.directories() + file, std::string(small_->table.name(file)), small_->node(file)};
}

Result<DatasetNode> PublishedDirs::node(std::uint64_t number) const {
  if (number < tree_.size()) return tree_entry(static_cast<std::uint32_t>(number)).node;
  const std::uint64_t directories = small_ == nullptr ? 0 : small_->table.directories();
  const std::uint64_t small = number - first_small_;
  if (small < directories) return DatasetNode();
  if (small_ == nullptr || small - directories >= small_->table.files()) return no_node(number);
  return small_->node(small - directories);
}

Result<PublishedDirs::Dir> PublishedDirs::directory(std::uint64_t number) const {
  if (number < tree_.size()) {
    const auto node = static_cast<std::uint32_t>(number);
    if (tree_.node(node).kind != NodeKind::dir) return no_directory(number);
    Dir dir{node, std::nullopt};
    if (small_ != nullptr) dir.small = small_->table.directory_at(path_in_tree(tree_, node));
    return dir;
  }
  const std::uint64_t small = number - first_small_;
  if (small_ == nullptr || small >= small_->table.directories()) return no_directory(number);
  return Dir{std::nullopt, small};
}

Result<std::uint64_t> PublishedDirs::parent(std::uint64_t number) const {
  WEFT_TRY(const Dir dir, directory(number));
  if (dir.node) return std::uint64_t{tree_.node(*dir.node).parent};
  return number_of_dir(small_->table.directory(*dir.small).parent);
}

Result<DatasetEntry> PublishedDirs::lookup(std::uint64_t number, std::string_view name) const {
  WEFT_TRY(const Dir dir, directory(number));
  if (dir.node)
    if (const auto found = tree_.lookup(*dir.node, name)) return tree_entry(*found);
  if (dir.small) {
    if (const auto found = small_->table.find_directory(*dir.small, name)) return small_dir_entry(*found);
    if (const auto found = small_->table.find_file(*dir.small, name)) return small_file_entry(*found);
  }
  return no_name(name);
}

// Merges three lists, each sorted by name: children in the version's tree, directories of the table, files of the
// table. A place is an entry of one list. The listing continues after the name of that entry in all three.
class PublishedDirs::Listing {
 public:
  Listing(const PublishedDirs& dirs, const Dir& dir) : dirs_(dirs) {
    if (dir.node) children_ = dirs.tree_.children(*dir.node);
    if (dir.small) small_ = dirs.small_->table.directory(*dir.small);
  }

  void go_behind(std::uint64_t place) {
    if (place == 0) return;
    const std::uint64_t list = (place - 1) % kLists;
    const std::uint64_t index = (place - 1) / kLists;
    if (index >= count(list)) return skip_all();
    const std::string_view name = this->name(list, index);
    for (std::uint64_t one = 0; one < kLists; ++one)
      next_[one] = first_that(count(one), [&](std::uint64_t i) { return this->name(one, i) > name; });
  }

  std::optional<DatasetEntry> next() {
    std::optional<std::uint64_t> first;
    for (std::uint64_t list = 0; list < kLists; ++list)
      if (next_[list] < count(list) && (!first || name_in(list) < name_in(*first))) first = list;
    if (!first) return std::nullopt;
    const std::uint64_t index = next_[*first];
    DatasetEntry out = entry(*first, index);
    out.behind = 1 + index * kLists + *first;
    // A directory that is in two lists is one entry.
    for (std::uint64_t list = 0; list < kLists; ++list)
      if (next_[list] < count(list) && name_in(list) == out.name) ++next_[list];
    return out;
  }
  bool at_end() const {
    return next_[kTree] == count(kTree) && next_[kDirs] == count(kDirs) && next_[kFiles] == count(kFiles);
  }

 private:
  static constexpr std::uint64_t kTree = 0, kDirs = 1, kFiles = 2, kLists = 3;

  std::uint64_t count(std::uint64_t list) const {
    if (list == kTree) return children_.size();
    return list == kDirs ? small_.directories : small_.files;
  }
  std::string_view name(std::uint64_t list, std::uint64_t index) const {
    if (list == kTree) return dirs_.tree_.node(children_[index]).name;
    const FileTable& table = dirs_.small_->table;
    return list == kDirs ? table.directory_name(small_.first_directory + index) : table.name(small_.first_file + index);
  }
  std::string_view name_in(std::uint64_t list) const { return name(list, next_[list]); }
  DatasetEntry entry(std::uint64_t list, std::uint64_t index) const {
    if (list == kTree) return dirs_.tree_entry(children_[index]);
    return list == kDirs ? dirs_.small_dir_entry(small_.first_directory + index)
                         : dirs_.small_file_entry(small_.first_file + index);
  }
  void skip_all() {
    for (std::uint64_t list = 0; list < kLists; ++list) next_[list] = count(list);
  }

  const PublishedDirs& dirs_;
  std::span<const std::uint32_t> children_;
  FileTable::Directory small_;
  std::array<std::uint64_t, kLists> next_{};
};

Result<DatasetPage> PublishedDirs::list(std::uint64_t number, std::uint64_t from, std::size_t entries_max) const {
  WEFT_TRY(const Dir dir, directory(number));
  Listing listing(*this, dir);
  listing.go_behind(from);
  DatasetPage page;
  while (page.entries.size() < entries_max) {
    auto entry = listing.next();
    if (!entry) break;
    page.entries.push_back(*std::move(entry));
  }
  page.last = listing.at_end();
  return page;
}

}  // namespace weft
