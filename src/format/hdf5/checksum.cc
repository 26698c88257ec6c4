#include "format/hdf5/checksum.h"

#include <array>
#include <bit>

namespace weft {
namespace {

// Three words of lookup3's state.
struct Lookup3 {
  std::uint32_t a, b, c;

  void mix() {
    a -= c, a ^= std::rotl(c, 4), c += b;
    b -= a, b ^= std::rotl(a, 6), a += c;
    c -= b, c ^= std::rotl(b, 8), b += a;
    a -= c, a ^= std::rotl(c, 16), c += b;
    b -= a, b ^= std::rotl(a, 19), a += c;
    c -= b, c ^= std::rotl(b, 4), b += a;
  }
  void finish() {
    c ^= b, c -= std::rotl(b, 14);
    a ^= c, a -= std::rotl(c, 11);
    b ^= a, b -= std::rotl(a, 25);
    c ^= b, c -= std::rotl(b, 16);
    a ^= c, a -= std::rotl(c, 4);
    b ^= a, b -= std::rotl(a, 14);
    c ^= b, c -= std::rotl(b, 24);
  }
  // Adds up to 12 bytes; bytes that are missing are 0.
  void add(std::span<const std::byte> bytes) {
    std::array<std::uint32_t, 3> words{};
    for (std::size_t i = 0; i < bytes.size(); ++i)
      words[i / 4] |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * (i % 4));
    a += words[0], b += words[1], c += words[2];
  }
};

}  // namespace

std::uint32_t hdf5_checksum(std::span<const std::byte> bytes) {
  constexpr std::size_t kStep = 12;
  const std::uint32_t first = 0xdeadbeefU + static_cast<std::uint32_t>(bytes.size());
  Lookup3 state{first, first, first};
  if (bytes.empty()) return state.c;
  for (; bytes.size() > kStep; bytes = bytes.subspan(kStep)) {
    state.add(bytes.first(kStep));
    state.mix();
  }
  state.add(bytes);
  state.finish();
  return state.c;
}

}  // namespace weft
