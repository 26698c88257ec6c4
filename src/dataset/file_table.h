// The table of the small files of a data set: their names, and where their bytes lie. It is one blob of a version, read
// where it lies in memory and never decoded (dataset/file_layout.h). A file costs 12 bytes and its base name. Tables
// are hostile when they come from another node.
//
// Directories are numbered breadth first: 0 is the root, and those of one directory follow one another, by name. Files
// are numbered by directory, and in it by name. Their bytes follow one another in this order, in the version's bundles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataset/row_shares.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/run_list.h"

namespace weft {

struct DirectoryRow;
class Sections;

// Makes a table, directory by directory. Takes memory in proportion to it.
class FileTableMaker {
 public:
  // Directories in the order of their numbers, the root first. Errc::unsupported: names of more than 4 GiB together, or
  // more than 2^32 files.
  Status directory(std::uint32_t parent, std::string_view name);
  // Of a directory that was added. Files come in the order of theirs.
  Status file(std::uint32_t directory, std::string_view name, std::uint64_t bytes);
  std::uint64_t files() const { return ends_.size(); }
  std::uint32_t directories() const { return static_cast<std::uint32_t>(directories_.size()); }
  std::string path_of(std::uint32_t directory) const;  // as FileTable::path_of
  std::vector<std::byte> make();

 private:
  struct Directory {
    std::uint32_t parent = 0;
    std::uint32_t name_end = 0;
    std::uint32_t files = 0;
  };
  void add_lines(Sections& out, std::uint64_t at) const;

  std::vector<Directory> directories_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> name_ends_;
  std::string directory_names_, file_names_;
};

// A view of a table's bytes, which outlive it. Any thread.
class FileTable {
 public:
  // Errc::corrupt for what no FileTableMaker makes of paths that a version may have (check_file_path).
  static Result<FileTable> check(std::span<const std::byte> bytes);

  std::uint64_t files() const { return files_; }
  std::uint64_t directories() const { return directories_; }
  std::uint64_t bytes() const { return files_ == 0 ? 0 : end_of(range(files_ - 1)); }  // of all files together

  struct Directory {
    std::uint64_t parent = 0;  // the root's is the root
    std::uint64_t first_directory = 0, directories = 0;
    std::uint64_t first_file = 0, files = 0;
  };
  Directory directory(std::uint64_t number) const;  // number < directories()
  std::string_view directory_name(std::uint64_t number) const;
  std::string_view name(std::uint64_t file) const;  // file < files(), here and below
  Range range(std::uint64_t file) const;            // in the bundles one after the other
  std::uint64_t directory_of(std::uint64_t file) const;
  std::string path_of(std::uint64_t directory) const;  // "" of the root, else "a/b"
  std::string file_path(std::uint64_t file) const;

  std::optional<std::uint64_t> find_directory(std::uint64_t in, std::string_view name) const;
  std::optional<std::uint64_t> find_file(std::uint64_t in, std::string_view name) const;
  std::optional<std::uint64_t> directory_at(std::string_view path) const;
  // May another file have this path beside these? Not if a small file has it, or the path of a directory above it, or
  // if a directory of small files has it.
  bool is_apart(std::string_view path) const;

  // keys.txt: the path of each file, a line each, in their order. `out` within its size.
  std::uint64_t keys_bytes() const;
  void read_keys(std::uint64_t offset, std::span<std::byte> out) const;

  RowShares shares() const;  // the files as rows

 private:
  friend class FileTableCheck;
  template <class T>
  T number_at(std::uint64_t at, std::uint64_t index) const;
  DirectoryRow row(std::uint64_t directory) const;
  std::uint64_t lines_of(std::uint64_t directory) const;
  std::pair<std::uint64_t, std::uint32_t> ends_of(std::uint64_t file) const;  // of its bytes, and of its name
  std::uint64_t line_start(std::uint64_t file) const;

  std::span<const std::byte> bytes_;
  std::uint64_t files_ = 0;
  std::uint64_t directories_ = 0;
  std::uint64_t directories_at_ = 0, lines_at_ = 0, ends_at_ = 0, name_ends_at_ = 0;
  std::string_view directory_names_, file_names_;
};

}  // namespace weft
