#include "weft/dataset_tree.h"

#include <algorithm>
#include <utility>

#include "dataset/container_dir.h"
#include "dataset/dataset_numbers.h"
#include "dataset/dataset_table.h"
#include "dataset/errors.h"
#include "dataset/published_dirs.h"
#include "dataset/record_dirs.h"

namespace weft {
namespace {

// The part of the numbering that a number lies in (dataset/dataset_numbers.h).
enum class Area : std::uint8_t { none, tree, records, small, container };

}  // namespace

struct DatasetTree::State {
  State(std::shared_ptr<const VersionTree> of, DatasetTables with)
      : tree(std::move(of)), tables(std::move(with)), numbers(tree->manifest(), tree->size()) {}

  std::uint32_t first_of(FileRole role) const {
    const Manifest& manifest = tree->manifest();
    return static_cast<std::uint32_t>(files_of(manifest, role).data() - manifest.files.data());
  }
  bool has_small_files() const { return !files_of(tree->manifest(), FileRole::file_table).empty(); }

  Area area(std::uint64_t number) const {
    if (number >= numbers.end()) return Area::none;
    if (number >= numbers.container(0)) return Area::container;
    if (number >= numbers.small()) return Area::small;
    if (number >= numbers.records() || number == kRecordsRoot) return Area::records;
    return number < kRootCount && number != kPublishedRoot ? Area::none : Area::tree;
  }

  // Returns the file table; nullptr if the version has no small files.
  Result<DatasetTablePointer> small_table() const {
    if (!has_small_files()) return DatasetTablePointer();
    return tables(first_of(FileRole::file_table));
  }
  PublishedDirs published(const DatasetTablePointer& small) const {
    return {*tree, small ? small->small_files() : nullptr, numbers.small()};
  }
  RecordDirs records() const { return {*tree, numbers}; }
  // Returns the tree of container `i`. @files is the last container.
  Result<ContainerDir> container(std::size_t i) const {
    const bool is_small = has_small_files() && i + 1 == numbers.containers();
    WEFT_TRY(DatasetTablePointer table,
             tables(is_small ? first_of(FileRole::file_table)
                             : first_of(FileRole::record_table) + static_cast<std::uint32_t>(i)));
    return ContainerDir(std::move(table));
  }

  const std::shared_ptr<const VersionTree> tree;
  const DatasetTables tables;
  const DatasetNumbers numbers;
};

DatasetTree::DatasetTree(std::shared_ptr<const VersionTree> tree, DatasetTables tables)
    : state_(std::make_unique<const State>(std::move(tree), std::move(tables))) {}

DatasetTree::~DatasetTree() = default;

std::uint64_t DatasetTree::size() const {
  return state_->numbers.end();
}

// Needs no table for nodes of the version's tree, directories of records/ and a container's own directory.
Result<DatasetNode> DatasetTree::node(std::uint64_t number) const {
  const State& state = *state_;
  switch (state.area(number)) {
    case Area::none:
      break;
    case Area::tree:
      return state.published(nullptr).node(number);
    case Area::records:
      return state.records().node(number);
    case Area::small: {
      WEFT_TRY(const DatasetTablePointer small, state.small_table());
      return state.published(small).node(number);
    }
    case Area::container: {
      const std::size_t i = state.numbers.container_of(number);
      const std::uint64_t first = state.numbers.container(i);
      if (number == first) return DatasetNode();
      WEFT_TRY(const ContainerDir container, state.container(i));
      return container.node(number - first);
    }
  }
  return no_node(number);
}

Result<std::uint64_t> DatasetTree::parent(std::uint64_t dir) const {
  const State& state = *state_;
  switch (state.area(dir)) {
    case Area::none:
      break;
    case Area::tree:
      return state.published(nullptr).parent(dir);
    case Area::records:
      return state.records().parent(dir);
    case Area::small: {
      WEFT_TRY(const DatasetTablePointer small, state.small_table());
      return state.published(small).parent(dir);
    }
    case Area::container: {
      const std::size_t i = state.numbers.container_of(dir);
      const std::uint64_t first = state.numbers.container(i);
      if (dir == first) return state.records().parent_of_container(i);
      WEFT_TRY(const ContainerDir container, state.container(i));
      WEFT_TRY(const std::uint64_t parent, container.parent(dir - first));
      return first + parent;
    }
  }
  return no_node(dir);
}

Result<DatasetEntry> DatasetTree::lookup(std::uint64_t dir, std::string_view name) const {
  if (name.empty() || name.find('/') != name.npos) return no_name(name);
  const State& state = *state_;
  switch (state.area(dir)) {
    case Area::none:
      break;
    case Area::records:
      return state.records().lookup(dir, name);
    case Area::tree:
    case Area::small: {
      WEFT_TRY(const DatasetTablePointer small, state.small_table());
      return state.published(small).lookup(dir, name);
    }
    case Area::container: {
      const std::size_t i = state.numbers.container_of(dir);
      const std::uint64_t first = state.numbers.container(i);
      WEFT_TRY(const ContainerDir container, state.container(i));
      WEFT_TRY(DatasetEntry entry, container.lookup(dir - first, name));
      entry.number += first;
      return entry;
    }
  }
  return no_node(dir);
}

Result<DatasetPage> DatasetTree::list(std::uint64_t dir, std::uint64_t from, std::size_t entries_max) const {
  const State& state = *state_;
  switch (state.area(dir)) {
    case Area::none:
      break;
    case Area::records:
      return state.records().list(dir, from, entries_max);
    case Area::tree:
    case Area::small: {
      WEFT_TRY(const DatasetTablePointer small, state.small_table());
      return state.published(small).list(dir, from, entries_max);
    }
    case Area::container: {
      const std::size_t i = state.numbers.container_of(dir);
      const std::uint64_t first = state.numbers.container(i);
      WEFT_TRY(const ContainerDir container, state.container(i));
      WEFT_TRY(DatasetPage page, container.list(dir - first, from, entries_max));
      for (DatasetEntry& entry : page.entries) entry.number += first;
      return page;
    }
  }
  return no_node(dir);
}

Result<MadeFile> DatasetTree::made(std::uint64_t number) const {
  const State& state = *state_;
  if (state.area(number) != Area::container) return no_node(number);
  const std::size_t i = state.numbers.container_of(number);
  WEFT_TRY(const ContainerDir container, state.container(i));
  return container.made(number - state.numbers.container(i));
}

Result<DatasetFacts> DatasetTree::facts() const {
  return dataset_facts(state_->tree->manifest(), state_->tables);
}

Result<std::optional<RecordRows>> DatasetTree::rows(std::uint32_t file) const {
  const State& state = *state_;
  const Manifest& manifest = state.tree->manifest();
  const auto found = find_table(manifest, manifest.files[file].path);
  if (!found) return std::optional<RecordRows>();
  WEFT_TRY(DatasetTablePointer table, state.tables(*found));
  const RecordTable& records = table->records()->table;
  RecordRows rows{records.size(), {}};
  rows.row = [table = std::move(table)](std::uint64_t number) { return table->records()->table.row(number); };
  return std::optional(std::move(rows));
}

}  // namespace weft
