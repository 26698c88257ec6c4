// Aligned columns for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/brief.h"

namespace weft {

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
  std::string text() const;  // with a line of titles, each line ended; no trailing blanks

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::string joined(const std::vector<std::string>& words, std::string_view separator);
std::string count_of(std::uint64_t count, std::string_view thing);  // "1 file", "3 files"

}  // namespace weft
