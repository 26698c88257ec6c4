#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/limits.h"
#include "base/text.h"
#include "dataset/record_layout.h"
#include "dataset/record_table.h"

namespace weft {
namespace {

Error broken(std::string_view what) {
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

bool is_path(std::string_view path) {
  if (path.empty() || path.size() > limits::kPathMax || !valid_utf8(path)) return false;
  std::size_t components = 0;
  for (const std::string_view one : split(path, '/'))
    if (one.empty() || one == "." || one == ".." || one.size() > limits::kNameMax ||
        ++components > limits::kPathComponentsMax)
      return false;
  return path.find('\0') == path.npos;
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
      return broken("expected its magic and a header");
    std::memcpy(&header_, bytes.data() + kRecordTableMagic.size(), sizeof header_);
    constexpr std::uint64_t kMax = 1ULL << 40U;  // bound of each number, so that no sum wraps
    if (header_.rows > limits::kRecordsPerContainerMax || header_.paths > kMax || header_.keys_bytes > kMax ||
        header_.path_bytes > UINT32_MAX || header_.skipped_bytes > kMax || header_.has_files > 1 ||
        header_.container_bytes > limits::kVersionBytesMax)
      return broken("expected smaller numbers in its header");
    const RecordSections at = record_sections(header_);
    if (at.end != bytes.size()) return broken(fmt::format("expected {} bytes, got {}", at.end, bytes.size()));
    if (header_.has_files == 0 && header_.paths != 0) return broken("expected no paths");
    if (text_at(bytes, {at.index, at.rows - at.index}) != record_npy_header(header_.rows))
      return broken("expected the header of index.npy");
    table_.container_bytes_ = header_.container_bytes;
    table_.rows_ = header_.rows;
    table_.paths_ = header_.paths;
    table_.left_out_ = header_.left_out;
    table_.has_files_ = header_.has_files != 0;
    table_.index_ = {at.index, at.rows - at.index + 16 * header_.rows};
    table_.keys_ = {at.keys, header_.keys_bytes};
    table_.skipped_ = {at.skipped, header_.skipped_bytes};
    table_.rows_at_ = at.rows;
    table_.path_ends_at_ = at.path_ends;
    table_.path_rows_at_ = at.path_rows;
    table_.path_text_at_ = at.path_text;
    return {};
  }

  Status check_rows() const {
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < table_.rows_; ++i) {
      const Range row = table_.row(i);
      if (row.offset < last || row.offset > table_.container_bytes_ ||
          row.length > table_.container_bytes_ - row.offset)
        return broken(fmt::format("row {}: expected rows in order, within the container", i));
      last = row.offset;
    }
    return {};
  }

  Status check_texts() const {
    if (!are_lines(text_at(table_.bytes_, table_.keys_), table_.rows_)) return broken("expected a line for each key");
    const std::uint64_t listed = std::min<std::uint64_t>(table_.left_out_, kRecordsSkippedListed);
    if (!are_lines(text_at(table_.bytes_, table_.skipped_), listed))
      return broken("expected a line for each member that was left out");
    return {};
  }

  Status check_paths() const {
    std::uint32_t last = 0;
    for (std::uint64_t i = 0; i < table_.paths_; ++i) {
      std::uint32_t end = 0, row = 0;
      std::memcpy(&end, table_.bytes_.data() + table_.path_ends_at_ + 4 * i, sizeof end);
      std::memcpy(&row, table_.bytes_.data() + table_.path_rows_at_ + 4 * i, sizeof row);
      if (end < last || end > header_.path_bytes || row >= table_.rows_)
        return broken(fmt::format("path {}: expected paths in order, each of a row", i));
      last = end;
    }
    if (last != header_.path_bytes) return broken("expected paths that end with their text");
    for (std::uint64_t i = 0; i < table_.paths_; ++i) WEFT_CHECK(check_path(i));
    return {};
  }

  // No directory of a path is a path itself. Directories that the previous path has too were checked with it.
  Status check_path(std::uint64_t number) const {
    const std::string_view path = table_.path(number);
    const std::string_view before = number == 0 ? std::string_view() : table_.path(number - 1);
    if (!is_path(path) || (number > 0 && path <= before))
      return broken(fmt::format("path {}: expected paths in order", number));
    const auto common = static_cast<std::size_t>(std::ranges::mismatch(before, path).in2 - path.begin());
    for (std::size_t slash = path.find('/', common); slash != path.npos; slash = path.find('/', slash + 1)) {
      const std::string_view dir = path.substr(0, slash);
      const std::uint64_t found = table_.first_path(dir);
      if (found < table_.paths_ && table_.path(found) == dir)
        return broken(fmt::format("path {}: its directory is a file", number));
    }
    return {};
  }

  RecordTable table_;
  RecordHeader header_;
};

Result<RecordTable> RecordTable::check(std::span<const std::byte> bytes) {
  return RecordTableCheck(bytes).run();
}

}  // namespace weft
