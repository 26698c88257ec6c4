#include "dataset/sums_text.h"

#include <algorithm>

namespace weft {

std::uint64_t sums_escapes(std::string_view path) {
  const auto escapes = static_cast<std::uint64_t>(
      std::ranges::count_if(path, [](char c) { return c == '\\' || c == '\n' || c == '\r'; }));
  return escapes == 0 ? 0 : escapes + 1;  // and one at the start of the line
}

void append_sums_line(std::string& out, const Digest& digest, std::string_view path) {
  if (sums_escapes(path) != 0) out += '\\';
  out += to_hex(digest);
  out += "  ";
  for (const char c : path) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else
      out += c;
  }
  out += '\n';
}

}  // namespace weft
