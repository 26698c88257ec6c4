// Base64 as RFC 4648 has it: the standard alphabet, padded.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

std::string to_base64(std::span<const std::byte> bytes);
// Nothing for what to_base64() does not write: other characters, white space, missing padding, bits that say nothing.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace weft
