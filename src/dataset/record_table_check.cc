#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/limits.h"
#include "base/text.h"
#include "dataset/record_table.h"
#include "weft/model/manifest.h"

namespace weft {
namespace {

Error broken_records(std::string_view what) {
  return {Errc::corrupt, fmt::format("record table: {}", what)};
}

std::string_view text_at(std::span<const std::byte> bytes, Range range) {
  return {reinterpret_cast<const char*>(bytes.data()) + range.offset, range.length};
}

bool is_plain(std::string_view text) {
  while (!text.empty()) {
    const CodePoint next = first_code_point(text);
    if (next.length == 0 || steers_terminal(next.value)) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

// True if the text is `count` lines of plain text, each with at most one tab.
bool are_lines(std::string_view text, std::uint64_t count) {
  if (!text.empty() && text.back() != '\n') return false;
  std::uint64_t lines = 0;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    ++lines;
    const std::size_t tab = line.find('\t');
    if (!is_plain(line.substr(0, tab)) || (tab != line.npos && !is_plain(line.substr(tab + 1)))) return false;
  }
  return lines == count;
}

}  // namespace

class RecordTableCheck {
 public:
  explicit RecordTableCheck(std::span<const std::byte> bytes) { table_.bytes_ = bytes; }

  Result<RecordTable> run() {
    WEFT_CHECK(take_header());
    WEFT_CHECK(check_rows());
    WEFT_CHECK(check_texts());
    WEFT_CHECK(check_paths());
    return table_;
  }

 private:
  Status take_header() {
    const std::span<const std::byte> bytes = table_.bytes_;
    if (bytes.size() < kRecordHeaderBytes || text_at(bytes, {0, kRecordTableMagic.size()}) != kRecordTableMagic)
      return broken_records("expected its magic and a header");
    std::memcpy(&table_.header_, bytes.data() + kRecordTableMagic.size(), sizeof table_.header_);
    constexpr std::uint64_t kMax = 1ULL << 40U;  // bound of each number, so that no sum wraps
    if (table_.header_.rows > limits::kRecordsPerContainerMax || table_.header_.paths > kMax ||
        table_.header_.keys_bytes > kMax || table_.header_.path_bytes > UINT32_MAX ||
        table_.header_.skipped_bytes > kMax || table_.header_.has_files > 1 ||
        table_.header_.container_bytes > limits::kVersionBytesMax)
      return broken_records("expected smaller numbers in its header");
    const RecordSections& at = table_.at_ = record_sections(table_.header_);
    if (at.end != bytes.size()) return broken_records(fmt::format("expected {} bytes, got {}", at.end, bytes.size()));
    if (table_.header_.has_files == 0 && table_.header_.paths != 0) return broken_records("expected no paths");
    if (text_at(bytes, {at.index, at.rows - at.index}) != record_npy_header(table_.header_.rows))
      return broken_records("expected the header of index.npy");
    return {};
  }

  Status check_rows() const {
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < table_.size(); ++i) {
      const Range row = table_.row(i);
      if (row.offset < last || row.offset > table_.container_bytes() ||
          row.length > table_.container_bytes() - row.offset)
        return broken_records(fmt::format("row {}: expected rows in order, within the container", i));
      last = row.offset;
    }
    return {};
  }

  Status check_texts() const {
    if (!are_lines(text_at(table_.bytes_, table_.keys_txt()), table_.size()))
      return broken_records("expected a line for each key");
    const std::uint64_t listed = std::min<std::uint64_t>(table_.left_out(), kRecordsSkippedListed);
    if (!are_lines(text_at(table_.bytes_, table_.skipped_txt()), listed))
      return broken_records("expected a line for each member that was left out");
    return {};
  }

  Status check_paths() const {
    std::uint32_t last = 0;
    for (std::uint64_t i = 0; i < table_.paths(); ++i) {
      std::uint32_t end = 0, row = 0;
      std::memcpy(&end, table_.bytes_.data() + table_.at_.path_ends + 4 * i, sizeof end);
      std::memcpy(&row, table_.bytes_.data() + table_.at_.path_rows + 4 * i, sizeof row);
      if (end < last || end > table_.header_.path_bytes || row >= table_.size())
        return broken_records(fmt::format("path {}: expected paths in order, each of a row", i));
      last = end;
    }
    if (last != table_.header_.path_bytes) return broken_records("expected paths that end with their text");
    for (std::uint64_t i = 0; i < table_.paths(); ++i) WEFT_CHECK(check_path(i));
    return {};
  }

  // No directory of a path is a path itself. Directories that the previous path has too were checked with it.
  Status check_path(std::uint64_t number) const {
    const std::string_view path = table_.path(number);
    const std::string_view before = number == 0 ? std::string_view() : table_.path(number - 1);
    if (!check_file_path(path).ok() || (number > 0 && path <= before))
      return broken_records(fmt::format("path {}: expected paths in order", number));
    const auto common = static_cast<std::size_t>(std::ranges::mismatch(before, path).in2 - path.begin());
    for (std::size_t slash = path.find('/', common); slash != path.npos; slash = path.find('/', slash + 1)) {
      const std::string_view dir = path.substr(0, slash);
      const std::uint64_t found = table_.first_path(dir);
      if (found < table_.paths() && table_.path(found) == dir)
        return broken_records(fmt::format("path {}: its directory is a file", number));
    }
    return {};
  }

  RecordTable table_;
};

Result<RecordTable> RecordTable::check(std::span<const std::byte> bytes) {
  return RecordTableCheck(bytes).run();
}

}  // namespace weft
