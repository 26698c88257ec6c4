#include "weft/content.h"

#include <fmt/core.h>

#include "base/text.h"

namespace weft {

std::string to_hex(const Digest& digest) {
  std::string text;
  text.reserve(64);
  for (std::uint8_t byte : digest.bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::optional<Digest> digest_from_hex(std::string_view hex) {
  Digest digest;
  if (hex.size() != 2 * digest.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    int high = hex_value(hex[2 * i]);
    int low = hex_value(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return digest;
}

}  // namespace weft
