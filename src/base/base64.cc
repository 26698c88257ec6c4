#include "base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace weft {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNone = 0xff;

constexpr std::array<std::uint8_t, 256> make_values() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNone);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i)
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  return values;
}
constexpr std::array<std::uint8_t, 256> kValues = make_values();

// `count` of the three bytes of a group, as count + 1 characters and padding.
void append_group(std::string& out, std::uint32_t group, std::size_t count) {
  for (std::size_t i = 0; i < 4; ++i) out += i <= count ? kAlphabet[(group >> (18 - 6 * i)) & 0x3fU] : '=';
}

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8U | (i < count ? std::to_integer<std::uint32_t>(bytes[at + i]) : 0);
    append_group(out, group, count);
  }
  return out;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return {};
  std::vector<std::byte> out;
  out.reserve(text.size() / 4 * 3);
  std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::size_t letters = text.size() - padding;
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (char c : text.substr(0, letters)) {
    std::uint8_t value = kValues[static_cast<unsigned char>(c)];
    if (value == kNone) return {};
    bits = bits << 6U | value;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out.push_back(static_cast<std::byte>(bits >> held));
    bits &= (1U << held) - 1;
  }
  if (bits != 0) return {};
  return out;
}

}  // namespace weft
