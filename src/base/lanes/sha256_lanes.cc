#include "base/lanes/sha256_lanes.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include <utility>

// Only for the functions below, whose callers have checked the CPU.
#define WEFT_SHA __attribute__((target("sha,sse4.1,ssse3")))
#define WEFT_SHA_INLINE __attribute__((target("sha,sse4.1,ssse3"), always_inline)) inline

namespace weft {
namespace {

// The state in the order of the instructions, and the last 16 words of the message schedule.
struct Lane {
  __m128i abef;
  __m128i cdgh;
  __m128i words[4];
};

WEFT_SHA_INLINE Lane load_state(const Sha256State& s) {
  auto word = [&s](int i) { return static_cast<int>(s[static_cast<std::size_t>(i)]); };
  Lane lane;
  lane.abef = _mm_set_epi32(word(0), word(1), word(4), word(5));
  lane.cdgh = _mm_set_epi32(word(2), word(3), word(6), word(7));
  return lane;
}

WEFT_SHA_INLINE void store_state(const Lane& lane, Sha256State& s) {
  alignas(16) std::uint32_t abef[4];
  alignas(16) std::uint32_t cdgh[4];
  _mm_store_si128(reinterpret_cast<__m128i*>(abef), lane.abef);
  _mm_store_si128(reinterpret_cast<__m128i*>(cdgh), lane.cdgh);
  s = {abef[3], abef[2], cdgh[3], cdgh[2], abef[1], abef[0], cdgh[1], cdgh[0]};
}

// Rounds 4·Group … 4·Group + 3.
template <std::size_t Group>
WEFT_SHA_INLINE void four_rounds(Lane& lane, const std::byte* block) {
  __m128i& words = lane.words[Group % 4];
  if constexpr (Group < 4) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    words = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * Group)), big_endian);
  } else {
    const __m128i last = lane.words[(Group + 3) % 4];
    __m128i next = _mm_sha256msg1_epu32(words, lane.words[(Group + 1) % 4]);
    next = _mm_add_epi32(next, _mm_alignr_epi8(last, lane.words[(Group + 2) % 4], 4));
    words = _mm_sha256msg2_epu32(next, last);
  }
  __m128i keyed = _mm_add_epi32(words, _mm_load_si128(reinterpret_cast<const __m128i*>(&kSha256Rounds[4 * Group])));
  lane.cdgh = _mm_sha256rnds2_epu32(lane.cdgh, lane.abef, keyed);
  lane.abef = _mm_sha256rnds2_epu32(lane.abef, lane.cdgh, _mm_shuffle_epi32(keyed, 0x0e));
}

template <std::size_t... Group>
WEFT_SHA_INLINE void all_rounds(Lane& a, const std::byte* block_a, Lane& b, const std::byte* block_b,
                                std::index_sequence<Group...>) {
  ((four_rounds<Group>(a, block_a), four_rounds<Group>(b, block_b)), ...);
}

WEFT_SHA_INLINE void add(Lane& lane, const Lane& before) {
  lane.abef = _mm_add_epi32(lane.abef, before.abef);
  lane.cdgh = _mm_add_epi32(lane.cdgh, before.cdgh);
}

bool cpu_has_sha() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (b & bit_SHA) == 0) return false;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_1) != 0 && (c & bit_SSSE3) != 0;
}

}  // namespace

bool sha256_lanes_usable() {
  static const bool usable = cpu_has_sha();
  return usable;
}

WEFT_SHA void sha256_lanes_update(Sha256State& state_a, const std::byte* a, Sha256State& state_b, const std::byte* b,
                                  std::size_t blocks) {
  Lane lane_a = load_state(state_a);
  Lane lane_b = load_state(state_b);
  for (std::size_t i = 0; i < blocks; ++i) {
    const Lane before_a = lane_a;
    const Lane before_b = lane_b;
    all_rounds(lane_a, a + 64 * i, lane_b, b + 64 * i, std::make_index_sequence<16>());
    add(lane_a, before_a);
    add(lane_b, before_b);
  }
  store_state(lane_a, state_a);
  store_state(lane_b, state_b);
}

}  // namespace weft

#else

namespace weft {

bool sha256_lanes_usable() {
  return false;
}
void sha256_lanes_update(Sha256State&, const std::byte*, Sha256State&, const std::byte*, std::size_t) {}

}  // namespace weft

#endif
