#include <fmt/core.h>

#include <cstring>
#include <vector>

#include "base/limits.h"
#include "dataset/file_table.h"
#include "weft/model/manifest.h"

namespace weft {
namespace {

Error broken_files(std::string_view what) {
  return {Errc::corrupt, fmt::format("file table: {}", what)};
}

bool is_component(std::string_view name) {
  return name.find('/') == name.npos && check_file_path(name).ok();
}

}  // namespace

class FileTableCheck {
 public:
  explicit FileTableCheck(std::span<const std::byte> bytes) { table_.bytes_ = bytes; }

  Result<FileTable> run() {
    WEFT_CHECK(take_header());
    WEFT_CHECK(check_bounds());
    WEFT_CHECK(check_executables());
    WEFT_CHECK(check_directories());
    for (std::uint64_t i = 0; i < table_.directories(); ++i) WEFT_CHECK(check_files_of(i));
    return table_;
  }

 private:
  Status take_header() {
    const std::span<const std::byte> bytes = table_.bytes_;
    if (bytes.size() < kFileTableHeaderBytes ||
        std::memcmp(bytes.data(), kFileTableMagic.data(), kFileTableMagic.size()) != 0)
      return broken_files("expected its magic and a header");
    std::memcpy(&table_.header_, bytes.data() + kFileTableMagic.size(), sizeof table_.header_);
    if (table_.header_.files > UINT32_MAX || table_.header_.directories > UINT32_MAX ||
        table_.header_.directory_name_bytes > UINT32_MAX || table_.header_.file_name_bytes > UINT32_MAX ||
        table_.header_.directories == 0 || table_.header_.executables > table_.header_.files)
      return broken_files("expected other numbers in its header");
    const FileTableSections& at = table_.at_ = file_table_sections(table_.header_);
    if (at.end != bytes.size()) return broken_files(fmt::format("expected {} bytes, got {}", at.end, bytes.size()));
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    table_.directory_names_ = {text + at.directory_names, table_.header_.directory_name_bytes};
    table_.file_names_ = {text + at.file_names, table_.header_.file_name_bytes};
    return {};
  }

  DirectoryRow row(std::uint64_t number) const { return table_.row(number); }

  // Checks all offsets. Afterwards every name and range can be read.
  Status check_bounds() const {
    DirectoryRow last;
    for (std::uint64_t i = 0; i < table_.header_.directories; ++i) {
      const DirectoryRow now = row(i);
      const bool in_order =
          now.parent >= last.parent && now.name_end >= last.name_end && now.first_file >= last.first_file;
      if (!in_order || (i == 0 ? now.parent != 0 || now.first_file != 0 : now.parent >= i) ||
          now.name_end > table_.header_.directory_name_bytes || now.first_file > table_.header_.files)
        return broken_files(fmt::format("directory {}: expected directories in order", i));
      last = now;
    }
    std::uint64_t end = 0;
    std::uint32_t name_end = 0;
    for (std::uint64_t i = 0; i < table_.header_.files; ++i) {
      const auto [now, name_now] = table_.ends_of(i);
      if (now < end || now - end > kSmallFileMax || name_now < name_end || name_now > table_.header_.file_name_bytes)
        return broken_files(fmt::format("file {}: expected files in order", i));
      end = now;
      name_end = name_now;
    }
    if (last.name_end != table_.header_.directory_name_bytes || name_end != table_.header_.file_name_bytes)
      return broken_files("expected names that end with their text");
    return {};
  }

  Status check_executables() const {
    std::uint64_t next = 0;  // the smallest file that the next row may name
    for (std::uint64_t i = 0; i < table_.header_.executables; ++i) {
      const ExecutableRow now = table_.executable(i);
      if (now.file < next || now.file >= table_.header_.files || now.bits == 0 || now.bits != execute_bits(now.bits))
        return broken_files(fmt::format("executable {}: expected x bits of files in order", i));
      next = std::uint64_t{now.file} + 1;
    }
    return {};
  }

  Status check_directories() {
    prefixes_.resize(table_.header_.directories);
    depths_.resize(table_.header_.directories);
    for (std::uint64_t i = 1; i < table_.header_.directories; ++i) {
      const std::string_view name = table_.directory_name(i);
      const std::uint64_t parent = row(i).parent;
      if (!is_component(name) || (row(i - 1).parent == parent && i > 1 && name <= table_.directory_name(i - 1)))
        return broken_files(fmt::format("directory {}: expected names in order", i));
      prefixes_[i] = prefixes_[parent] + name.size() + 1;
      depths_[i] = static_cast<std::uint8_t>(depths_[parent] + 1);
      if (prefixes_[i] - 1 > limits::kPathMax || depths_[i] > limits::kPathComponentsMax)
        return broken_files(fmt::format("directory {}: expected a shorter path", i));
    }
    if (!table_.directory_name(0).empty()) return broken_files("expected a root without a name");
    return {};
  }

  Status check_files_of(std::uint64_t number) {
    const FileTable::Directory dir = table_.directory(number);
    if (number != 0 && dir.files == 0 && dir.directories == 0)
      return broken_files(fmt::format("directory {}: expected files below it", number));
    if (table_.lines_of(number) != line_)
      return broken_files(fmt::format("directory {}: expected its lines in order", number));
    std::uint64_t child = dir.first_directory;
    const std::uint64_t children_end = dir.first_directory + dir.directories;
    for (std::uint64_t i = dir.first_file; i < dir.first_file + dir.files; ++i) {
      const std::string_view name = table_.name(i);
      if (!is_component(name) || (i != dir.first_file && name <= table_.name(i - 1)))
        return broken_files(fmt::format("file {}: expected names in order", i));
      while (child < children_end && table_.directory_name(child) < name) ++child;
      if (child < children_end && table_.directory_name(child) == name)
        return broken_files(fmt::format("file {}: a directory has its name", i));
      if (prefixes_[number] + name.size() > limits::kPathMax || depths_[number] + 1U > limits::kPathComponentsMax)
        return broken_files(fmt::format("file {}: expected a shorter path", i));
      line_ += prefixes_[number] + name.size() + 1;
    }
    return {};
  }

  FileTable table_;
  std::vector<std::uint64_t> prefixes_;  // bytes of the path before a name, by directory
  std::vector<std::uint8_t> depths_;     // components of the path, by directory
  std::uint64_t line_ = 0;               // offset of the next line in keys.txt
};

Result<FileTable> FileTable::check(std::span<const std::byte> bytes) {
  return FileTableCheck(bytes).run();
}

}  // namespace weft
