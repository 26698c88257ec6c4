// The lines of a file of sums, as sha256sum of coreutils writes and checks them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/content.h"

namespace weft {

// Bytes of a line beside its path: the digits, two spaces and the newline.
inline constexpr std::uint64_t kSumsLineSpare = 67;

// Returns how many bytes longer the line is because of characters in the path that need an escape; 0 for most paths.
std::uint64_t sums_escapes(std::string_view path);
inline std::uint64_t sums_line_bytes(std::string_view path) {
  return kSumsLineSpare + path.size() + sums_escapes(path);
}
// Appends a line of sums_line_bytes(path).
void append_sums_line(std::string& out, const Digest& digest, std::string_view path);

}  // namespace weft
