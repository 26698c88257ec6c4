// Base64 according to RFC 4648: standard alphabet, with padding.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

std::string to_base64(std::span<const std::byte> bytes);
// Returns nothing for text that to_base64() does not write: other characters, white space, missing padding, unused bits
// that are set.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace weft
