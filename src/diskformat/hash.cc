#include "diskformat/hash.h"

#include <xxhash.h>
#include <algorithm>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // the same names: by AVX2 or AVX-512 where the CPU has them, three times as fast
#endif

namespace weft {

std::uint64_t xxh3_64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t xxh3_64(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t head_of(std::span<const std::byte> content) {
  return xxh3_64(content.first(std::min<std::size_t>(content.size(), kExtentHeadBytes)));
}

}  // namespace weft
