// Aligned columns for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/brief.h"

namespace weft {

// A cell that is wider makes no other cell of its column wider.
inline constexpr std::size_t kColumnWidthMax = 80;

enum class Align : unsigned char { left, right };

class TextTable {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }  // one for each column
  bool empty() const { return rows_.empty(); }
  std::string text() const { return lines(true); }  // with a line of titles, each line ended; no trailing blanks
  // The rows since the last call, for a listing that is printed page by page: each page has columns of its own widths.
  // Only the first has titles. "" if there are no rows.
  std::string take_page();

 private:
  std::string lines(bool titles) const;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  bool titled_ = false;
};

std::string joined(const std::vector<std::string>& words, std::string_view separator);
// Of `count` words the first ones, as many as are in `words` and fit into a cell: "a b +3 more". At least one.
std::string first_of(const std::vector<std::string>& words, std::uint64_t count);
std::string count_of(std::uint64_t count, std::string_view thing);  // "1 file", "3 files"

}  // namespace weft
