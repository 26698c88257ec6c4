#include "store/uuid.h"

#include <charconv>

#include <fmt/core.h>

#include "base/sys.h"

namespace weft {

std::string uuid_text(const Uuid& uuid) {
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", uuid.high >> 32U, uuid.high >> 16U & 0xffffU,
                     uuid.high & 0xffffU, uuid.low >> 48U, uuid.low & 0xffff'ffff'ffffU);
}

std::optional<Uuid> parse_uuid(std::string_view text) {
  std::string digits;
  for (char c : text)
    if (c != '-') digits += c;
  if (digits.size() != 32) return std::nullopt;
  Uuid uuid;
  const char* middle = digits.data() + 16;
  std::from_chars(digits.data(), middle, uuid.high, 16);
  std::from_chars(middle, middle + 16, uuid.low, 16);
  if (uuid_text(uuid) != text) return std::nullopt;
  return uuid;
}

std::string random_uuid() {
  constexpr std::uint64_t kVersion = 4U << 12U;
  constexpr std::uint64_t kVariant = 1ULL << 63U;
  Uuid uuid;
  const std::string digits = random_hex(16);
  std::from_chars(digits.data(), digits.data() + 16, uuid.high, 16);
  std::from_chars(digits.data() + 16, digits.data() + 32, uuid.low, 16);
  uuid.high = (uuid.high & ~0xf000ULL) | kVersion;
  uuid.low = (uuid.low & ~(3ULL << 62U)) | kVariant;
  return uuid_text(uuid);
}

}  // namespace weft
