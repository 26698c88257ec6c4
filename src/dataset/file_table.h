// The table of the small files of a data set: their names, and where their bytes lie. It is one blob of a version, read
// in place from memory and never decoded (dataset/file_layout.h). A file costs 12 bytes and its base name. A table from
// another node is untrusted.
//
// Each directory but the root has files below it. Directories are numbered breadth first from the root, 0. The children
// of a directory are consecutive, by name. Files are numbered by directory, and by name within it. Their bytes follow
// one another in this order in the version's bundles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataset/file_layout.h"
#include "dataset/row_shares.h"
#include "weft/bytes/run_list.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

class Sections;

// Builds a table, directory by directory. Uses memory in proportion to the table.
class FileTableMaker {
 public:
  // Adds a directory. They come in the order of their numbers, the root first. Errc::unsupported: names of more than 4
  // GiB together, or more than 2^32 files.
  Status directory(std::uint32_t parent, std::string_view name);
  // Adds a file to an added directory. Files come in the order of their directories.
  Status file(std::uint32_t directory, std::string_view name, std::uint64_t bytes, std::uint8_t execute = 0);
  std::uint64_t files() const { return ends_.size(); }
  std::uint32_t directories() const { return static_cast<std::uint32_t>(directories_.size()); }
  std::string path_of(std::uint32_t directory) const;  // as FileTable::path_of
  std::vector<std::byte> make();                       // leaves out directories without files below them

 private:
  struct Directory {
    std::uint32_t parent = 0;
    std::uint32_t name_end = 0;
    std::uint32_t files = 0;
  };
  std::string_view name_of(std::size_t directory) const;
  void drop_empty();
  void add_lines(Sections& out, std::uint64_t at) const;

  std::vector<Directory> directories_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> name_ends_;
  std::vector<ExecutableRow> executables_;
  std::string directory_names_, file_names_;
};

// A view of a table's bytes, which outlive it. Any thread.
class FileTable {
 public:
  // Errc::corrupt: no FileTableMaker makes such a table from paths that a version may have (check_file_path).
  static Result<FileTable> check(std::span<const std::byte> bytes);

  std::uint64_t files() const { return header_.files; }
  std::uint64_t directories() const { return header_.directories; }
  std::uint64_t bytes() const { return files() == 0 ? 0 : end_of(range(files() - 1)); }  // size of all files together

  struct Directory {
    std::uint64_t parent = 0;  // the root is its own parent
    std::uint64_t first_directory = 0, directories = 0;
    std::uint64_t first_file = 0, files = 0;
  };
  Directory directory(std::uint64_t number) const;  // number < directories()
  std::string_view directory_name(std::uint64_t number) const;
  std::string_view name(std::uint64_t file) const;  // file < files(), here and below
  Range range(std::uint64_t file) const;            // in the concatenated bundles
  std::uint8_t execute(std::uint64_t file) const;   // as File::execute
  std::uint64_t directory_of(std::uint64_t file) const;
  std::string path_of(std::uint64_t directory) const;  // "" for the root, else "a/b"
  std::string file_path(std::uint64_t file) const;

  std::optional<std::uint64_t> find_directory(std::uint64_t in, std::string_view name) const;
  std::optional<std::uint64_t> find_file(std::uint64_t in, std::string_view name) const;
  std::optional<std::uint64_t> directory_at(std::string_view path) const;
  // True if another file may have this path beside the small files: no small file has the path, or that of a directory
  // above it, and no directory of small files has the path.
  bool is_apart(std::string_view path) const;

  // keys.txt: the path of each file, one per line, in the order of the files. `out` lies within its size.
  std::uint64_t keys_bytes() const;
  void read_keys(std::uint64_t offset, std::span<std::byte> out) const;
  std::uint64_t line_start(std::uint64_t file) const;  // offset of the file's line in keys.txt
  bool has_in_names(char c) const {
    return directory_names_.find(c) != directory_names_.npos || file_names_.find(c) != file_names_.npos;
  }

  RowShares shares() const;  // the rows are the files

 private:
  friend class FileTableCheck;
  template <class T>
  T number_at(std::uint64_t at, std::uint64_t index) const;
  DirectoryRow row(std::uint64_t directory) const;
  ExecutableRow executable(std::uint64_t index) const;
  std::uint64_t lines_of(std::uint64_t directory) const;
  std::pair<std::uint64_t, std::uint32_t> ends_of(std::uint64_t file) const;  // end of its bytes, end of its name

  std::span<const std::byte> bytes_;
  FileTableHeader header_;
  FileTableSections at_;
  std::string_view directory_names_, file_names_;
};

}  // namespace weft
