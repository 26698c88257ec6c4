#include "base/short_text.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/core.h>

#include "base/text.h"

namespace weft {

std::string short_time(std::uint64_t time_ns) {
  std::string text = utc_time(time_ns).substr(0, 16);
  std::replace(text.begin(), text.end(), 'T', ' ');
  return text + "Z";
}

std::string local_time(std::uint64_t time_ns) {
  const auto seconds = static_cast<std::time_t>(time_ns / 1'000'000'000U);
  std::tm tm{};
  localtime_r(&seconds, &tm);
  std::array<char, 32> buffer{};
  return {buffer.data(), std::strftime(buffer.data(), buffer.size(), "%Y-%m-%d %H:%M", &tm)};
}

std::string short_number(std::string_view text) {
  const auto value = parse_real(text);
  const bool whole = text.find_first_of(".eE") == std::string_view::npos;
  return value && !whole ? fmt::format("{:.4g}", *value) : std::string(text);
}

std::string first_line(std::string_view text) {
  return printable(text.substr(0, text.find('\n')), 60);
}

std::string joined_lines(std::string_view text) {
  std::string out;
  for (const std::string_view line : split(text, '\n'))
    if (!line.empty()) out += (out.empty() ? "" : "; ") + printable(line);
  return out;
}

}  // namespace weft
