// The names of content. An extent's bytes are named by length, XXH3-128 and tree SHA-256 root together; the XXH3 alone
// is a key, never a proof.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

// XXH3-128 in its canonical form (big-endian high half, then low half, when written as bytes).
struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Hash128&) const = default;
};

// A SHA-256, or the root of a tree SHA-256.
struct Digest {
  std::array<std::uint8_t, 32> bytes{};
  auto operator<=>(const Digest&) const = default;
};

// Tree SHA-256 (root): with chunk = kDigestChunk bytes (the last may be shorter, at least one chunk even if empty),
// root = SHA-256( "weft-tree-1" ‖ length as 8 bytes little-endian ‖ SHA-256(chunk 0) ‖ SHA-256(chunk 1) ‖ … ).
inline constexpr std::uint64_t kDigestChunk = 1U << 20U;

// In a store created with digest = none, root is all zeros.
struct ContentId {
  std::uint64_t length = 0;  // bytes
  Hash128 xxh;
  Digest root;
  auto operator<=>(const ContentId&) const = default;
};

// A run of bytes of a file.
struct Range {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  auto operator<=>(const Range&) const = default;
};

std::string to_hex(const Digest& digest);  // 64 lower-case digits
std::string to_hex(const Hash128& hash);   // 32 lower-case digits
std::optional<Digest> digest_from_hex(std::string_view hex);

}  // namespace weft

template <>
struct std::hash<weft::ContentId> {
  std::size_t operator()(const weft::ContentId& id) const noexcept {
    return static_cast<std::size_t>(id.xxh.low ^ (id.length * 0x9e3779b97f4a7c15ULL));
  }
};
