// Text tables with aligned columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/short_text.h"

namespace weft {

// Cells wider than this do not widen the column.
inline constexpr std::size_t kColumnWidthMax = 80;

enum class Align : unsigned char { left, right };

class TextTable {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }  // one cell for each column
  bool empty() const { return rows_.empty(); }
  std::string text() const { return lines(true); }  // a line of titles, then the rows, without trailing blanks
  // Returns and drops the rows, for a listing in pages. Each page has its own column widths; only the first page has
  // titles. "" if there are no rows.
  std::string take_page();

 private:
  std::string lines(bool titles) const;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  bool titled_ = false;
};

std::string joined(const std::vector<std::string>& words, std::string_view separator);
// Returns as many of `words` as fit into a cell, at least one, and counts the omitted words: "a b +3 more". There
// are `count` words in all, of which `words` has the first.
std::string first_of(const std::vector<std::string>& words, std::uint64_t count);
std::string count_of(std::uint64_t count, std::string_view thing);  // "1 file", "3 files"

}  // namespace weft
