#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "weft/model/tree.h"

namespace weft {
namespace {

bool needs_escape(CodePoint c) {
  return c.length == 0 || steers_terminal(c.value) || c.value == '%' || c.value == '/';
}

void append_escape(std::string& out, std::string_view bytes) {
  for (const char c : bytes) out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
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

}  // namespace weft
