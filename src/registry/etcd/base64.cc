#include "registry/etcd/base64.h"

#include <sodium.h>

namespace weft {
namespace {

constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL;

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text(sodium_base64_ENCODED_LEN(bytes.size(), kVariant) - 1, '\0');  // sodium ends it with a NUL
  sodium_bin2base64(text.data(), text.size() + 1, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    kVariant);
  return text;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  if (text.empty()) return std::vector<std::byte>{};
  if (text.size() < 4) return {};  // sodium expects an address for the bytes
  std::vector<std::byte> bytes(text.size() / 4 * 3);
  std::size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(), text.size(), nullptr,
                        &size, nullptr, kVariant) != 0)
    return {};
  bytes.resize(size);
  return bytes;
}

}  // namespace weft
