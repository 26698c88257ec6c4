// A table of a data set as its trees use it: checked by itself, and against the manifest.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "dataset/file_table.h"
#include "dataset/record_table.h"
#include "weft/dataset_tree.h"

namespace weft {

// The small files of a version, and the files of the manifest that have their bytes.
struct SmallFiles {
  FileTable table;
  std::uint32_t first_bundle = 0;          // the bundles follow one another in the manifest
  std::vector<std::uint64_t> bundle_ends;  // among the bytes of all bundles, ascending

  DatasetNode node(std::uint64_t file) const;  // file < table.files()
};

// The records of a container.
struct ContainerRecords {
  RecordTable table;
  std::uint32_t table_file = 0;  // of the manifest, as the next
  std::uint32_t container = 0;   // a published file
};

class DatasetTable {
 public:
  using Content = std::variant<SmallFiles, ContainerRecords>;
  DatasetTable(Content content, std::shared_ptr<const void> keeper)
      : content_(std::move(content)), keeper_(std::move(keeper)) {}

  const SmallFiles* small_files() const { return std::get_if<SmallFiles>(&content_); }  // nullptr: it is the other
  const ContainerRecords* records() const { return std::get_if<ContainerRecords>(&content_); }

 private:
  const Content content_;
  const std::shared_ptr<const void> keeper_;  // of the bytes that the content is a view of
};

// The numbers in the manifest of a published file and of a record table, by their path.
std::optional<std::uint32_t> find_published(const Manifest& manifest, std::string_view path);
std::optional<std::uint32_t> find_table(const Manifest& manifest, std::string_view path);

}  // namespace weft
