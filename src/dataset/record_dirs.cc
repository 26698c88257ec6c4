#include "dataset/record_dirs.h"

#include <algorithm>

#include "dataset/errors.h"
#include "dataset/published_dirs.h"

namespace weft {

RecordDirs::RecordDirs(const VersionTree& tree, const DatasetNumbers& numbers)
    : tree_(tree), numbers_(numbers), tables_(files_of(tree.manifest(), FileRole::record_table)) {}

std::size_t RecordDirs::first_table(std::string_view at_least) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(tables_, at_least, {}, &File::path) - tables_.begin());
}

std::uint64_t RecordDirs::number_of_dir(std::uint32_t node) const {
  return node == kPublishedRoot ? kRecordsRoot : numbers_.records() + node;
}

Result<RecordDirs::Dir> RecordDirs::directory(std::uint64_t number) const {
  if (number == kRecordsRoot) return Dir{kPublishedRoot, ""};
  const std::uint64_t node = number - numbers_.records();
  if (number < numbers_.records() || node < kRootCount || node >= tree_.size()) return no_node(number);
  Dir dir{static_cast<std::uint32_t>(node), ""};
  dir.prefix = path_in_tree(tree_, dir.node) + '/';
  const std::size_t table = first_table(dir.prefix);
  if (table == tables_.size() || !tables_[table].path.starts_with(dir.prefix)) return no_node(number);
  return dir;
}

Result<DatasetNode> RecordDirs::node(std::uint64_t number) const {
  WEFT_CHECK(directory(number));
  return DatasetNode();
}

Result<std::uint64_t> RecordDirs::parent(std::uint64_t number) const {
  WEFT_TRY(const Dir dir, directory(number));
  return number_of_dir(tree_.node(dir.node).parent);
}

Result<std::uint64_t> RecordDirs::parent_of_container(std::size_t container) const {
  if (container >= tables_.size()) return std::uint64_t{kRecordsRoot};
  const auto file = node_at(tree_, tables_[container].path);
  if (!file) return no_node(numbers_.container(container));
  return number_of_dir(tree_.node(*file).parent);
}

DatasetEntry RecordDirs::entry_of(const Dir& dir, std::size_t table) const {
  const std::string_view rest = std::string_view(tables_[table].path).substr(dir.prefix.size());
  const std::size_t slash = rest.find('/');
  if (slash == rest.npos) return {numbers_.container(table), std::string(rest), {}, table + 1};
  std::string behind = dir.prefix + std::string(rest.substr(0, slash));
  behind += static_cast<char>('/' + 1);                             // sorts after all paths below the directory
  const auto node = tree_.lookup(dir.node, rest.substr(0, slash));  // exists: it leads to a published file
  return {number_of_dir(node.value_or(kPublishedRoot)), std::string(rest.substr(0, slash)), {}, first_table(behind)};
}

DatasetEntry RecordDirs::small_files_entry() const {
  return {numbers_.container(tables_.size()), std::string(kSmallFilesName), {}, tables_.size() + 1};
}

Result<DatasetEntry> RecordDirs::lookup(std::uint64_t number, std::string_view name) const {
  WEFT_TRY(const Dir dir, directory(number));
  if (const auto table = find(dir, name)) return entry_of(dir, *table);
  if (number == kRecordsRoot && name == kSmallFilesName && has_small_files()) return small_files_entry();
  return no_name(name);
}

std::optional<std::size_t> RecordDirs::find(const Dir& dir, std::string_view name) const {
  const std::string path = dir.prefix + std::string(name);
  std::size_t table = first_table(path);
  if (table < tables_.size() && tables_[table].path == path) return table;
  table = first_table(path + '/');
  if (table < tables_.size() && tables_[table].path.starts_with(path + '/')) return table;
  return std::nullopt;
}

// A place is the number of the first table after an entry. @files comes after all tables.
Result<DatasetPage> RecordDirs::list(std::uint64_t number, std::uint64_t from, std::size_t entries_max) const {
  WEFT_TRY(const Dir dir, directory(number));
  const auto is_here = [&](std::size_t table) {
    return table < tables_.size() && tables_[table].path.starts_with(dir.prefix);
  };
  DatasetPage page;
  std::uint64_t next = std::max<std::uint64_t>(from, first_table(dir.prefix));
  while (is_here(next) && page.entries.size() < entries_max) {
    page.entries.push_back(entry_of(dir, next));
    next = page.entries.back().behind;
  }
  if (is_here(next)) return page;
  const bool small =
      number == kRecordsRoot && has_small_files() && next <= tables_.size() && !find(dir, kSmallFilesName);
  if (small && page.entries.size() == entries_max) return page;
  if (small) page.entries.push_back(small_files_entry());
  page.last = true;
  return page;
}

}  // namespace weft
