#include "dataset/container_dir.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "dataset/errors.h"
#include "dataset/share_file.h"

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

DatasetNode made_node() {
  return {DatasetNode::Kind::made};
}

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

bool ContainerDir::has(std::uint64_t entry) const {
  if (entry == number_of(Fixed::files)) return records_ != nullptr && records_->table.has_files();
  if (entry == number_of(Fixed::index_npy)) return records_ != nullptr;
  if (entry == number_of(Fixed::skipped_txt)) return records_ != nullptr && records_->table.left_out() != 0;
  return true;
}

// Returns the node of the container's own directory, or of one of its entries.
Result<DatasetNode> ContainerDir::own_node(std::uint64_t number) const {
  const auto found = std::ranges::find(kEntries, number, &std::pair<std::string_view, std::uint64_t>::second);
  if (number != number_of(Fixed::dir) && (found == kEntries.end() || !has(number))) return no_node(number);
  const auto part = [this](Range range) { return DatasetNode{DatasetNode::Kind::part, records_->table_file, range}; };
  if (number == number_of(Fixed::index_npy)) return part(records_->table.index_npy());
  if (number == number_of(Fixed::skipped_txt)) return part(records_->table.skipped_txt());
  if (number != number_of(Fixed::keys_txt)) return DatasetNode();
  return records_ == nullptr ? made_node() : part(records_->table.keys_txt());
}

DatasetNode ContainerDir::row_node(std::uint64_t row) const {
  return {DatasetNode::Kind::part, records_->container, records_->table.row(row)};
}

Result<DatasetNode> ContainerDir::node(std::uint64_t number) const {
  if (is_share(number) && ContainerNumbers::share_of(number).rank) return made_node();
  if (is_share(number)) return DatasetNode();
  if (number < kFirstPath) return own_node(number);
  const std::uint64_t path = (number - kFirstPath) / ContainerNumbers::kOfPath;
  if (number != ContainerNumbers::path(path)) {
    WEFT_CHECK(path_of_dir(number));
    return DatasetNode();
  }
  if (records_ == nullptr || path >= records_->table.paths()) return no_node(number);
  return row_node(records_->table.row_of(path));
}

Result<std::string> ContainerDir::path_of_dir(std::uint64_t number) const {
  if (number == number_of(Fixed::files) && has(number)) return std::string();
  if (number < kFirstPath) return no_directory(number);
  const std::uint64_t first = (number - kFirstPath) / ContainerNumbers::kOfPath;
  const std::uint64_t components = (number - kFirstPath) % ContainerNumbers::kOfPath;
  if (records_ == nullptr || first >= records_->table.paths()) return no_node(number);
  if (components == 0) return no_directory(number);
  const auto path = first_components(records_->table.path(first), components);
  return path ? Result<std::string>(std::string(*path)) : no_node(number);
}

Result<std::uint64_t> ContainerDir::parent(std::uint64_t dir) const {
  if (is_share(dir)) return parent_of_share(ContainerNumbers::share_of(dir));
  if (dir < kFirstPath) return number_of(Fixed::dir);
  WEFT_TRY(const std::string path, path_of_dir(dir));
  const auto [above, name] = split_name(path);
  if (above.empty()) return number_of(Fixed::files);
  const auto [grand, parent] = split_name(above);
  const auto found = records_->table.lookup(grand, parent);
  return found ? Result<std::uint64_t>(path_entry(grand, *found).number) : no_node(dir);
}

DatasetEntry ContainerDir::path_entry(std::string_view dir, const RecordTable::Entry& entry) const {
  const auto components = static_cast<unsigned>(entry.row ? 0 : components_in(dir) + 1);
  return {ContainerNumbers::path(entry.first, components), std::string(entry.name),
          entry.row ? row_node(*entry.row) : DatasetNode(), entry.next};
}

Result<DatasetEntry> ContainerDir::lookup(std::uint64_t dir, std::string_view name) const {
  if (dir == number_of(Fixed::dir)) {
    const auto found = std::ranges::find(kEntries, name, &std::pair<std::string_view, std::uint64_t>::first);
    if (found == kEntries.end() || !has(found->second)) return no_name(name);
    WEFT_TRY(const DatasetNode node, own_node(found->second));
    return DatasetEntry{found->second, std::string(name), node};
  }
  if (is_share(dir) || dir == number_of(Fixed::order)) {
    const ShareName above = is_share(dir) ? ContainerNumbers::share_of(dir) : ShareName();
    if (above.rank) return no_directory(dir);
    const auto share = inner_share(above, !is_share(dir), name);
    if (!share) return no_name(name);
    return DatasetEntry{ContainerNumbers::share(*share), std::string(name), share->rank ? made_node() : DatasetNode()};
  }
  WEFT_TRY(const std::string path, path_of_dir(dir));
  const auto found = records_->table.lookup(path, name);
  return found ? Result<DatasetEntry>(path_entry(path, *found)) : no_name(name);
}

Result<DatasetPage> ContainerDir::list(std::uint64_t dir, std::uint64_t from, std::size_t entries_max) const {
  DatasetPage page;
  if (dir == number_of(Fixed::dir)) {
    for (std::uint64_t i = from; i < kEntries.size(); ++i) {
      const auto [name, number] = kEntries[i];
      if (!has(number)) continue;
      WEFT_TRY(const DatasetNode node, own_node(number));
      page.entries.push_back({number, std::string(name), node, i + 1});
    }
    page.last = true;
    return page;
  }
  if (is_share(dir) || dir == number_of(Fixed::order)) {
    if (is_share(dir) && ContainerNumbers::share_of(dir).rank) return no_directory(dir);
    page.last = true;
    return page;
  }
  WEFT_TRY(const std::string path, path_of_dir(dir));
  auto entry = records_->table.entry_at(path, from);
  while (entry && page.entries.size() < entries_max) {
    page.entries.push_back(path_entry(path, *entry));
    entry = records_->table.entry_at(path, entry->next);
  }
  page.last = !entry;
  return page;
}

Result<MadeFile> ContainerDir::made(std::uint64_t number) const {
  if (is_share(number)) {
    const ShareName name = ContainerNumbers::share_of(number);
    if (name.rank)
      return make_share_file(records_ == nullptr ? small_->table.shares() : records_->table.shares(), name);
  }
  if (number != number_of(Fixed::keys_txt) || small_ == nullptr) return no_node(number);
  MadeFile keys;
  keys.size = small_->table.keys_bytes();
  keys.read = [table = table_](std::uint64_t offset, std::span<std::byte> out) {
    table->small_files()->table.read_keys(offset, out);
  };
  return keys;
}

}  // namespace weft
