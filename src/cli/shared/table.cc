#include "cli/shared/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace weft {
namespace {

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

}  // namespace

std::string TextTable::lines(bool titles) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(characters(columns_[i].title));
    for (const auto& cells : rows_) widths[i] = std::max(widths[i], std::min(characters(cells[i]), kColumnWidthMax));
  }
  std::string text;
  auto line = [&](auto cell) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::size_t width = characters(cell(i));
      const std::string blanks(widths[i] - std::min(width, widths[i]), ' ');
      text += columns_[i].align == Align::right ? blanks + cell(i) : cell(i) + blanks;
      text += "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  if (titles) line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& cells : rows_) line([&](std::size_t i) -> const std::string& { return cells[i]; });
  return text;
}

std::string TextTable::take_page() {
  if (rows_.empty()) return {};
  std::string page = lines(!std::exchange(titled_, true));
  rows_.clear();
  return page;
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

std::string first_of(const std::vector<std::string>& words, std::uint64_t count) {
  constexpr std::size_t kMore = 12;  // width of " +1234 more"
  std::string text;
  std::uint64_t shown = 0;
  for (const std::string& word : words) {
    const bool fits = characters(text) + characters(word) + (shown + 1 < count ? kMore : 0) < kColumnWidthMax;
    if (shown != 0 && !fits) break;
    if (shown != 0) text += ' ';
    text += word;
    ++shown;
  }
  return shown < count ? fmt::format("{} +{} more", text, count - shown) : text;
}

std::string count_of(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace weft
