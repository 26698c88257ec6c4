#include "cli/shared/table.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"

namespace weft {
namespace {

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

}  // namespace

std::string TextTable::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(characters(columns_[i].title));
    for (const auto& cells : rows_) widths[i] = std::max(widths[i], characters(cells[i]));
  }
  std::string text;
  auto line = [&](auto cell) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      std::string blanks(widths[i] - characters(cell(i)), ' ');
      text += columns_[i].align == Align::right ? blanks + cell(i) : cell(i) + blanks;
      text += "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& cells : rows_) line([&](std::size_t i) -> const std::string& { return cells[i]; });
  return text;
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

std::string count_of(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace weft
