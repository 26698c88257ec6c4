#include "base/plain_text.h"

#include <algorithm>

#include "base/text.h"

namespace weft {

bool plain_text(std::string_view text, TextLines lines) {
  auto refused = [lines](char c) {
    return static_cast<unsigned char>(c) < 0x20 && !(lines == TextLines::many && (c == '\n' || c == '\t'));
  };
  return valid_utf8(text) && std::none_of(text.begin(), text.end(), refused);
}

}  // namespace weft
