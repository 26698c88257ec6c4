#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "weft/tree.h"

namespace weft {
namespace {

bool needs_escape(CodePoint c) {
  return c.length == 0 || steers_terminal(c.value) || c.value == '%' || c.value == '/';
}

void append_escape(std::string& out, std::string_view bytes) {
  for (const char c : bytes) out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
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
  bool first = true;
  while (!raw.empty()) {
    const CodePoint c = first_code_point(raw);
    const std::string_view bytes = raw.substr(0, std::max<std::size_t>(c.length, 1));
    if (dots || needs_escape(c) || (first && c.value == '@'))
      append_escape(out, bytes);
    else
      out += bytes;
    first = false;
    raw.remove_prefix(bytes.size());
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
  // Each name has exactly one escape: other spellings (lower-case digits, needless escapes) are refused.
  if (escape_component(raw) != escaped) return std::nullopt;
  return raw;
}

}  // namespace weft
