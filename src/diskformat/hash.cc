#include "diskformat/hash.h"

#define XXH_STATIC_LINKING_ONLY  // the size of a state
#include <xxhash.h>
#include <algorithm>
#if defined(__x86_64__) && !defined(WEFT_STATIC)  // Debian's archive lacks what chooses the instructions
#include <xxh_x86dispatch.h>  // redefines the XXH3 names to use AVX2 or AVX-512 if available, three times as fast
#endif

namespace weft {

std::uint64_t xxh3_64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t xxh3_64(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

struct Xxh3::State {
  XXH3_state_t state;
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(&state_->state);
}
Xxh3::~Xxh3() = default;

void Xxh3::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->state, bytes.data(), bytes.size());
}

std::uint64_t Xxh3::value() const {
  return XXH3_64bits_digest(&state_->state);
}

std::uint64_t head_of(std::span<const std::byte> content) {
  return xxh3_64(content.first(std::min<std::size_t>(content.size(), kExtentHeadBytes)));
}

}  // namespace weft
