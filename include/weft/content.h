// The names of content (base/content.cc). The name of an extent is its length and the root of its tree SHA-256.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

// A SHA-256, or the root of a tree SHA-256.
struct Digest {
  std::array<std::uint8_t, 32> bytes{};
  auto operator<=>(const Digest&) const = default;
};

// Tree SHA-256 (root): with chunk = kDigestChunk bytes (the last may be shorter, at least one chunk even if empty),
// root = SHA-256( "weft-tree-1" ‖ length as 8 bytes little-endian ‖ SHA-256(chunk 0) ‖ SHA-256(chunk 1) ‖ … ).
inline constexpr std::uint64_t kDigestChunk = 1U << 20U;

struct ContentId {
  std::uint64_t length = 0;  // bytes
  Digest root;
  auto operator<=>(const ContentId&) const = default;
};

// The extents of a published file are adjacent and in order: the first is at 0, each begins where the previous one
// ends, none is empty.
struct Extent {
  std::uint64_t offset = 0;
  ContentId id;
  // XXH3-64 of the first min(length, kExtentHeadBytes) bytes. Finds the content in a pack that has lost its table of
  // contents. Not part of the identity.
  std::uint64_t head = 0;
  bool operator==(const Extent&) const = default;
};
inline constexpr std::uint64_t kExtentHeadBytes = 64;

// A run of bytes of a file.
struct Range {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  auto operator<=>(const Range&) const = default;
};

std::string to_hex(const Digest& digest);  // 64 lower-case digits
std::optional<Digest> digest_from_hex(std::string_view hex);

}  // namespace weft

template <>
struct std::hash<weft::Digest> {
  std::size_t operator()(const weft::Digest& digest) const noexcept {
    std::size_t part = 0;  // any part of a SHA-256 is a good hash
    std::memcpy(&part, digest.bytes.data(), sizeof part);
    return part;
  }
};

template <>
struct std::hash<weft::ContentId> {
  std::size_t operator()(const weft::ContentId& id) const noexcept {
    return std::hash<weft::Digest>()(id.root) ^ (id.length * 0x9e3779b97f4a7c15ULL);
  }
};
