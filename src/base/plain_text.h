// What people say of things, where it must not move a terminal's cursor.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

enum class TextLines : std::uint8_t { one, many };
// UTF-8 without control characters; of many lines, with line ends and tabs.
bool plain_text(std::string_view text, TextLines lines);

}  // namespace weft
