// Texts that users write about versions: messages, metrics, names of base models.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

enum class TextLines : std::uint8_t { one, many };
// True for UTF-8 without control characters (C0, DEL, C1). Text of many lines may have line ends and tabs.
bool plain_text(std::string_view text, TextLines lines);

}  // namespace weft
