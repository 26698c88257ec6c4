// The record table of a container: its records, by position and by name. It is one blob of a version, read in place
// from memory and never decoded (dataset/record_layout.h). A table from another node is untrusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/record_layout.h"
#include "dataset/row_shares.h"
#include "weft/content.h"
#include "weft/model/records.h"
#include "weft/result.h"

namespace weft {

// Builds a table from the records that a scanner finds. Uses memory in proportion to the table.
class RecordTableMaker final : public RecordSink {
 public:
  explicit RecordTableMaker(std::uint64_t container_bytes) : container_bytes_(container_bytes) {}

  Status record(const Record& record) override;
  Status link(std::string_view name, std::string_view target) override;
  Status left_out(std::string_view name, std::string_view why) override;

  // Call once. `with_files`: the names are paths, and files/ shows the records. Of records with one name the last
  // counts, as when a tar is unpacked. A file whose path is also a directory is left out.
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
    std::uint64_t behind = 0;  // offset of the record before the link
  };
  using Paths = std::map<std::string, std::uint64_t, std::less<>>;  // from path to row

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
  // Errc::corrupt: no RecordTableMaker makes such a table.
  static Result<RecordTable> check(std::span<const std::byte> bytes);

  std::uint64_t container_bytes() const { return header_.container_bytes; }
  std::uint64_t size() const { return header_.rows; }
  Range row(std::uint64_t number) const;                       // number < size(); by offset
  std::uint64_t left_out() const { return header_.left_out; }  // members that are not records
  bool has_files() const { return header_.has_files != 0; }

  // The ranges of the table that are shown as files.
  // index_npy(): [('offset', '<u8'), ('length', '<u8')]. keys_txt(): one name per line; %XX for '%' and bytes that are
  // not text. skipped_txt(): "NAME<tab>WHY" of the first members that were left out.
  Range index_npy() const { return {at_.index, at_.rows - at_.index + 16 * size()}; }
  Range keys_txt() const { return {at_.keys, header_.keys_bytes}; }
  Range skipped_txt() const { return {at_.skipped, header_.skipped_bytes}; }

  // An entry of a directory below files/.
  struct Entry {
    std::string_view name;
    std::optional<std::uint64_t> row;  // none: a directory
    std::uint64_t first = 0;           // index of its path, or of the first path below the directory
    std::uint64_t next = 0;            // `from` of the directory's next entry
  };
  std::uint64_t paths() const { return header_.paths; }  // number of paths of files, which are sorted
  std::string_view path(std::uint64_t number) const;     // number < paths(), here and below
  std::uint64_t row_of(std::uint64_t number) const;
  // Returns the entry `name` of `dir`, which is "" or a path; nothing if it does not exist.
  std::optional<Entry> lookup(std::string_view dir, std::string_view name) const;
  // Returns the entry of `dir` at `from`: 0 for the first entry, then Entry::next. Nothing at the end.
  std::optional<Entry> entry_at(std::string_view dir, std::uint64_t from) const;

  RowShares shares() const;

 private:
  friend class RecordTableCheck;
  std::uint64_t first_path(std::string_view at_least) const;
  Entry entry_of(std::string_view dir, std::uint64_t number) const;

  std::span<const std::byte> bytes_;
  RecordHeader header_;
  RecordSections at_;
};

}  // namespace weft
