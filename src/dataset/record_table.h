// The record table of a container: which records it has, by position and by name. It is one blob of a version, read
// where it lies in memory and never decoded (dataset/record_layout.h). Tables are hostile when they come from another
// node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataset/row_shares.h"
#include "weft/content.h"
#include "weft/records.h"
#include "weft/result.h"

namespace weft {

// Makes a table of what a scanner finds. Takes memory in proportion to it.
class RecordTableMaker final : public RecordSink {
 public:
  explicit RecordTableMaker(std::uint64_t container_bytes) : container_bytes_(container_bytes) {}

  Status record(const Record& record) override;
  Status link(std::string_view name, std::string_view target) override;
  Status left_out(std::string_view name, std::string_view why) override;

  // Once. `with_files`: the names are paths, and files/ shows the records. Of equal names the last one counts, as when
  // a tar is unpacked; a file in the place of a directory is left out.
  Result<std::vector<std::byte>> make(bool with_files);

 private:
  struct Row {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::string name;
  };
  struct Link {
    std::string name;
    std::string target;
    std::uint64_t behind = 0;  // the offset of the record before it
  };
  using Paths = std::map<std::string, std::uint64_t, std::less<>>;  // to a row

  Paths find_paths();
  void add_links(Paths& paths);
  void drop_covered(Paths& paths);

  const std::uint64_t container_bytes_;
  std::vector<Row> rows_;
  std::vector<Link> links_;
  std::string skipped_;
  std::uint64_t left_out_ = 0;
  std::uint64_t name_bytes_ = 0;
};

// A view of a table's bytes, which outlive it. Any thread.
class RecordTable {
 public:
  // Errc::corrupt for what no RecordTableMaker makes.
  static Result<RecordTable> check(std::span<const std::byte> bytes);

  std::uint64_t container_bytes() const { return container_bytes_; }
  std::uint64_t size() const { return rows_; }
  Range row(std::uint64_t number) const;                // number < size(); by offset
  std::uint64_t left_out() const { return left_out_; }  // members that are no records
  bool has_files() const { return has_files_; }

  // Where the files that show the table lie in it.
  Range index_npy() const { return index_; }      // [('offset', '<u8'), ('length', '<u8')]
  Range keys_txt() const { return keys_; }        // the name of each row, a line each; %XX for what is no text, and '%'
  Range skipped_txt() const { return skipped_; }  // "NAME<tab>WHY" of the first members that were left out

  // An entry of a directory below files/.
  struct Entry {
    std::string_view name;
    std::optional<std::uint64_t> row;  // none: a directory
    std::uint64_t first = 0;           // its number among all paths, or that of the first path below it
    std::uint64_t next = 0;            // where the directory's next entry begins
  };
  std::uint64_t paths() const { return paths_; }      // of files, in order
  std::string_view path(std::uint64_t number) const;  // number < paths(), here and below
  std::uint64_t row_of(std::uint64_t number) const;
  // `dir` is "" or a path. Nothing for what is not there.
  std::optional<Entry> lookup(std::string_view dir, std::string_view name) const;
  // The entry of `dir` that begins at `from`: 0 for the first, then Entry::next. Nothing at the end.
  std::optional<Entry> entry_at(std::string_view dir, std::uint64_t from) const;

  RowShares shares() const;

 private:
  friend class RecordTableCheck;
  std::uint64_t first_path(std::string_view at_least) const;
  Entry entry_of(std::string_view dir, std::uint64_t number) const;

  std::span<const std::byte> bytes_;
  std::uint64_t container_bytes_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t paths_ = 0;
  std::uint64_t left_out_ = 0;
  bool has_files_ = false;
  Range index_, keys_, skipped_;
  std::uint64_t rows_at_ = 0, path_ends_at_ = 0, path_rows_at_ = 0, path_text_at_ = 0;
};

}  // namespace weft
