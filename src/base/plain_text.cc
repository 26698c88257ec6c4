#include "base/plain_text.h"

#include "base/text.h"

namespace weft {

bool plain_text(std::string_view text, TextLines lines) {
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    const bool allowed = lines == TextLines::many && (c.value == '\n' || c.value == '\t');
    if (c.length == 0 || (is_control(c.value) && !allowed)) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

}  // namespace weft
