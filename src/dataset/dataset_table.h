// A table of a data set as its directories use it: checked by itself, and against the manifest.
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
#include "weft/model/dataset.h"

namespace weft {

// A part of a file of the manifest.
struct FilePart {
  std::uint32_t file = 0;
  Range range = {};
  std::uint8_t execute = 0;  // as File::execute
};

// The file table of a version, and the bundles with the bytes of its files.
struct SmallFiles {
  FileTable table;
  std::uint32_t first_bundle = 0;          // index in the manifest; bundles are consecutive
  std::vector<std::uint64_t> bundle_ends;  // ends of the bundles in their concatenated bytes, ascending

  FilePart part(std::uint64_t file) const;  // file < table.files()
};

// The records of a container.
struct ContainerRecords {
  RecordTable table;
  std::uint32_t table_file = 0;  // index of the record table in the manifest
  std::uint32_t container = 0;   // index of the container, a published file
};

class DatasetTable {
 public:
  using Content = std::variant<SmallFiles, ContainerRecords>;
  DatasetTable(Content content, std::shared_ptr<const void> keeper)
      : content_(std::move(content)), keeper_(std::move(keeper)) {}

  const SmallFiles* small_files() const { return std::get_if<SmallFiles>(&content_); }  // nullptr: it is a record table
  const ContainerRecords* records() const { return std::get_if<ContainerRecords>(&content_); }

 private:
  const Content content_;
  const std::shared_ptr<const void> keeper_;  // owns the table's bytes
};

// Returns the index in the manifest of the published file, or of the record table, with this path.
std::optional<std::uint32_t> find_published(const Manifest& manifest, std::string_view path);
std::optional<std::uint32_t> find_table(const Manifest& manifest, std::string_view path);

}  // namespace weft
