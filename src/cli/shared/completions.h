#pragma once

#include <string_view>

namespace weft {

// The script of scripts/completions for "bash", "zsh" or "fish"; "" for any other shell.
std::string_view completions_for(std::string_view shell);

}  // namespace weft
