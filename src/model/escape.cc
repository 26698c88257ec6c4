#include <fmt/core.h>

#include "base/text.h"
#include "weft/tree.h"

namespace weft {
namespace {

bool needs_escape(char c) {
  auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f || c == '%' || c == '/';
}

void append_escape(std::string& out, char c) {
  out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
}

std::optional<char> unescape_byte(std::string_view digits) {
  if (digits.size() < 2) return std::nullopt;
  int high = hex_value(digits[0]), low = hex_value(digits[1]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

}  // namespace

std::string escape_component(std::string_view raw) {
  if (raw.empty()) return "%-";
  bool dots = raw == "." || raw == "..";
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (dots || needs_escape(raw[i]) || (i == 0 && raw[i] == '@'))
      append_escape(out, raw[i]);
    else
      out += raw[i];
  }
  return out;
}

std::optional<std::string> unescape_component(std::string_view escaped) {
  if (escaped == "%-") return "";
  std::string raw;
  raw.reserve(escaped.size());
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] != '%') {
      raw += escaped[i];
      continue;
    }
    auto byte = unescape_byte(escaped.substr(i + 1));
    if (!byte) return std::nullopt;
    raw += *byte;
    i += 2;
  }
  // One name has one escape: other spellings (lower-case digits, escapes without need) are none.
  if (escape_component(raw) != escaped) return std::nullopt;
  return raw;
}

}  // namespace weft
