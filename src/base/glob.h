// Patterns for names, matched in time linear in pattern times text: users supply them. Pure.
#pragma once

#include <string_view>

namespace weft {

// True if the whole text matches. '*' is any run, '?' any one byte, '[a-z]' and '[!a-z]' one byte of a set; '\' quotes
// the next byte.
bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace weft
