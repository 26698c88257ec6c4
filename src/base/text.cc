#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>

namespace weft {
namespace {

// Returns the length of the well-formed UTF-8 sequence at the start of `text`; 0 if there is none.
std::size_t utf8_sequence(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  auto tail = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    unsigned low = first == 0xe0 ? 0xa0 : 0x80;
    unsigned high = first == 0xed ? 0x9f : 0xbf;
    return tail(1, low, high) && tail(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    unsigned low = first == 0xf0 ? 0x90 : 0x80;
    unsigned high = first == 0xf4 ? 0x8f : 0xbf;
    return tail(1, low, high) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

void append_hex(std::string& out, std::string_view bytes) {
  for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
  const std::size_t length = text.empty() ? 0 : utf8_sequence(text);
  if (length == 0) return {};
  const auto first = static_cast<unsigned char>(text[0]);
  char32_t value = length == 1 ? first : first & (0x7fU >> length);
  for (const char c : text.substr(1, length - 1)) value = value << 6U | (static_cast<unsigned char>(c) & 0x3fU);
  return {value, length};
}

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f);
}

bool steers_terminal(char32_t c) {
  const bool mark = c == 0x061c || c == 0x200e || c == 0x200f;
  const bool embedding_or_line = c >= 0x2028 && c <= 0x202e;
  return is_control(c) || mark || embedding_or_line || (c >= 0x2066 && c <= 0x2069);
}

bool valid_utf8(std::string_view text) {
  while (!text.empty()) {
    std::size_t length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

char lower_ascii(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    std::size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

Result<std::string> percent_decoded(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  for (std::size_t at = 0; at < raw.size(); ++at) {
    char byte = raw[at];
    if (byte == '%') {
      const int high = at + 2 < raw.size() ? hex_value(raw[at + 1]) : -1;
      const int low = at + 2 < raw.size() ? hex_value(raw[at + 2]) : -1;
      if (high < 0 || low < 0) return Error{Errc::invalid, "path: expected two hexadecimal digits after %"};
      byte = static_cast<char>(high * 16 + low);
      at += 2;
    }
    if (byte == '\0') return Error{Errc::invalid, "path: has a NUL"};
    text += byte;
  }
  return text;
}

std::optional<std::uint64_t> parse_u64(std::string_view text) {
  if (!all_digits(text)) return std::nullopt;
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  double value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || std::isnan(value)) return std::nullopt;
  return value == 0 ? 0.0 : value;
}

std::optional<std::uint64_t> parse_time(std::string_view text, std::uint64_t seconds_max) {
  constexpr std::pair<char, std::uint64_t> kUnits[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86'400}};
  std::uint64_t unit = 1;
  for (const auto& [name, seconds] : kUnits)
    if (!text.empty() && text.back() == name) {
      unit = seconds;
      text.remove_suffix(1);
      break;
    }
  const auto count = parse_u64(text);
  if (!count || *count > seconds_max / unit) return {};
  return *count * unit;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KMGTP";
  const auto unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  if (unit != std::string_view::npos) text.remove_suffix(1);
  const unsigned shift = unit == std::string_view::npos ? 0 : 10 * (static_cast<unsigned>(unit) + 1);
  const auto number = parse_u64(text);
  if (!number || *number > UINT64_MAX >> shift) return {};
  return *number << shift;
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string utc_time(std::uint64_t time_ns) {
  auto seconds = static_cast<std::time_t>(time_ns / 1'000'000'000U);
  std::tm tm{};
  ::gmtime_r(&seconds, &tm);
  std::array<char, 32> buffer{};
  std::size_t length = std::strftime(buffer.data(), buffer.size(), "%Y-%m-%dT%H:%M:%SZ", &tm);
  return {buffer.data(), length};
}

std::string printable(std::string_view text, std::size_t bytes_max) {
  std::string out;
  bool cut = text.size() > bytes_max;
  while (!text.empty() && out.size() < bytes_max) {
    const CodePoint c = first_code_point(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(c.length, 1));
    if (c.length == 0 || steers_terminal(c.value))
      append_hex(out, bytes);
    else
      out += bytes;
    text.remove_prefix(bytes.size());
  }
  return cut ? out + "…" : out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto end =
        std::ranges::find_if(text, [](char c) { return (c < ' ' && c != '\n' && c != '\t') || c == 0x7f; });
    const auto plain = static_cast<std::size_t>(end - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t length = std::max<std::size_t>(first_code_point(text).length, 1);
    out += printable(text.substr(0, length));
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace weft
