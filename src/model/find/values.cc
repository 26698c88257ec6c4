#include "model/find/values.h"

#include <charconv>
#include <cmath>
#include <ctime>
#include <vector>

namespace weft {

std::optional<double> find_number(std::string_view text) {
  double value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || !std::isfinite(value)) return std::nullopt;
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit.empty()) return value;
  std::size_t power = std::string_view("KMGT").find(unit[0]);
  if (power == std::string_view::npos || (unit.size() > 1 && unit.substr(1) != "i")) return std::nullopt;
  return value * std::pow(unit.size() > 1 ? 1024.0 : 1000.0, static_cast<double>(power + 1));
}

std::optional<std::uint64_t> find_time(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (text.ends_with('Z')) text.remove_suffix(1);
  if (text.size() != 10 && text.size() != 16 && text.size() != 19) return std::nullopt;
  std::vector<int> parts = {0};
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool digit = text[i] >= '0' && text[i] <= '9';
    if (digit != (kForm[i] == '0') || (!digit && text[i] != kForm[i])) return std::nullopt;
    if (digit)
      parts.back() = parts.back() * 10 + (text[i] - '0');
    else
      parts.push_back(0);
  }
  parts.resize(6);
  std::tm utc{};
  utc.tm_year = parts[0] - 1900;
  utc.tm_mon = parts[1] - 1;
  utc.tm_mday = parts[2];
  utc.tm_hour = parts[3];
  utc.tm_min = parts[4];
  utc.tm_sec = parts[5];
  std::tm asked = utc;
  std::time_t seconds = ::timegm(&utc);
  bool kept = utc.tm_mon == asked.tm_mon && utc.tm_mday == asked.tm_mday && utc.tm_hour == asked.tm_hour;
  if (seconds < 0 || !kept) return std::nullopt;
  return static_cast<std::uint64_t>(seconds) * 1'000'000'000U;
}

}  // namespace weft
