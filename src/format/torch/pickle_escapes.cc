#include "format/torch/pickle_escapes.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft {
namespace {

// Decodes `digits` digits at the start of a text.
std::optional<std::uint32_t> escaped_number(std::string_view text, std::size_t digits, int base) {
  std::uint32_t value = 0;
  if (digits == 0 || text.size() < digits) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value, base);
  if (error != std::errc() || end != text.data() + digits) return std::nullopt;
  return value;
}

// An escape: the bytes that it means, and its length after the backslash.
struct PickleEscape {
  std::string bytes;
  std::size_t length = 0;
};

std::optional<PickleEscape> pickle_byte_escape(std::string_view text) {
  constexpr std::string_view kNames = "\\'\"abfnrtv", kBytes = "\\'\"\a\b\f\n\r\t\v";
  if (text.empty()) return std::nullopt;
  if (const auto at = kNames.find(text[0]); at != std::string_view::npos) return PickleEscape{{kBytes[at]}, 1};
  if (text[0] == 'x')
    if (const auto value = escaped_number(text.substr(1), 2, 16)) return PickleEscape{{static_cast<char>(*value)}, 3};
  const auto octal = text.substr(0, 3).find_first_not_of("01234567");
  const std::size_t digits = std::min<std::size_t>({octal, text.size(), 3});
  if (const auto value = escaped_number(text, digits, 8)) return PickleEscape{{static_cast<char>(*value)}, digits};
  return std::nullopt;
}

std::string utf8_of(std::uint32_t code) {
  const auto tail = [code](unsigned shift) { return static_cast<char>(0x80U | ((code >> shift) & 0x3fU)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0U | (code >> 6U)), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0U | (code >> 12U)), tail(6), tail(0)};
  return {static_cast<char>(0xf0U | (code >> 18U)), tail(12), tail(6), tail(0)};
}

std::optional<PickleEscape> pickle_code_point_escape(std::string_view text) {
  constexpr std::uint32_t kCodePointMax = 0x10ffff;
  if (text.starts_with('\\')) return PickleEscape{"\\\\", 1};  // the second backslash begins no escape
  if (text.empty() || (text[0] != 'u' && text[0] != 'U')) return std::nullopt;
  const std::size_t digits = text[0] == 'u' ? 4 : 8;
  const auto value = escaped_number(text.substr(1), digits, 16);
  if (!value || *value > kCodePointMax) return std::nullopt;
  return PickleEscape{utf8_of(*value), digits + 1};
}

std::size_t unescape_line(std::span<char> text, std::optional<PickleEscape> (*escape_at)(std::string_view)) {
  const std::string_view all(text.data(), text.size());
  std::size_t from = std::min(all.find('\\'), all.size()), to = from;
  while (from < all.size()) {
    const auto escape = all[from] == '\\' ? escape_at(all.substr(from + 1)) : std::nullopt;
    if (!escape) {
      text[to++] = all[from++];
      continue;
    }
    std::ranges::copy(escape->bytes, text.begin() + static_cast<std::ptrdiff_t>(to));
    to += escape->bytes.size();
    from += escape->length + 1;
  }
  return to;
}

}  // namespace

std::size_t unescape_bytes(std::span<char> text) {
  return unescape_line(text, pickle_byte_escape);
}

std::size_t unescape_text(std::span<char> text) {
  return unescape_line(text, pickle_code_point_escape);
}

}  // namespace weft
