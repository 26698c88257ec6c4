#include "base/lanes/sha256_wide.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <utility>

#include "base/lanes/sha256_rounds.h"

// Only for the functions below, whose callers have checked the CPU.
#define WEFT_WIDE __attribute__((target("avx512f")))
#define WEFT_WIDE_INLINE __attribute__((target("avx512f"), always_inline)) inline

namespace weft {
namespace {

using Words = __m512i;  // one word of each lane

// Truth tables of three operands, for _mm512_ternarylogic_epi32.
constexpr int kXor = 0x96;
constexpr int kFirstChooses = 0xca;
constexpr int kMajority = 0xe8;

template <int A, int B, int C>
WEFT_WIDE_INLINE Words xor_of_rotations(Words x) {
  return _mm512_ternarylogic_epi32(_mm512_ror_epi32(x, A), _mm512_ror_epi32(x, B), _mm512_ror_epi32(x, C), kXor);
}
template <int A, int B, int Shift>
WEFT_WIDE_INLINE Words xor_of_rotations_and_shift(Words x) {
  return _mm512_ternarylogic_epi32(_mm512_ror_epi32(x, A), _mm512_ror_epi32(x, B), _mm512_srli_epi32(x, Shift), kXor);
}

WEFT_WIDE_INLINE Words big_endian(Words x) {
  const Words odd_bytes = _mm512_set1_epi32(static_cast<int>(0xff00ff00));
  return _mm512_ternarylogic_epi32(odd_bytes, _mm512_ror_epi32(x, 8), _mm512_rol_epi32(x, 8), kFirstChooses);
}

// These three transpose sixteen rows of sixteen words: words, then pairs of words, then quarters of a register.
template <std::size_t... I>
WEFT_WIDE_INLINE void interleave_words(Words* rows, std::index_sequence<I...>) {
  auto step = [rows](std::size_t i) WEFT_WIDE {
    const Words even = rows[i];
    rows[i] = _mm512_unpacklo_epi32(even, rows[i + 1]);
    rows[i + 1] = _mm512_unpackhi_epi32(even, rows[i + 1]);
  };
  (step(2 * I), ...);
}
template <std::size_t... I>
WEFT_WIDE_INLINE void interleave_pairs(Words* rows, std::index_sequence<I...>) {
  auto step = [rows](std::size_t i) WEFT_WIDE {
    const Words a = rows[i], b = rows[i + 1], c = rows[i + 2], d = rows[i + 3];
    rows[i] = _mm512_unpacklo_epi64(a, c);
    rows[i + 1] = _mm512_unpackhi_epi64(a, c);
    rows[i + 2] = _mm512_unpacklo_epi64(b, d);
    rows[i + 3] = _mm512_unpackhi_epi64(b, d);
  };
  (step(4 * I), ...);
}
template <std::size_t... I>
WEFT_WIDE_INLINE void gather_quarters(Words* rows, std::index_sequence<I...>) {
  auto step = [rows](std::size_t i) WEFT_WIDE {
    const Words even_low = _mm512_shuffle_i32x4(rows[i], rows[i + 4], 0x88);
    const Words odd_low = _mm512_shuffle_i32x4(rows[i], rows[i + 4], 0xdd);
    const Words even_high = _mm512_shuffle_i32x4(rows[i + 8], rows[i + 12], 0x88);
    const Words odd_high = _mm512_shuffle_i32x4(rows[i + 8], rows[i + 12], 0xdd);
    rows[i] = _mm512_shuffle_i32x4(even_low, even_high, 0x88);
    rows[i + 4] = _mm512_shuffle_i32x4(odd_low, odd_high, 0x88);
    rows[i + 8] = _mm512_shuffle_i32x4(even_low, even_high, 0xdd);
    rows[i + 12] = _mm512_shuffle_i32x4(odd_low, odd_high, 0xdd);
  };
  (step(I), ...);
}

// Loads one block per lane. words[i]: the i-th word of each lane's block.
template <std::size_t... I>
WEFT_WIDE_INLINE void load_blocks(Words* words, const std::array<const std::byte*, kSha256WideLanes>& data,
                                  std::size_t offset, std::index_sequence<I...>) {
  ((words[I] = _mm512_loadu_si512(data[I] + offset)), ...);
  interleave_words(words, std::make_index_sequence<8>());
  interleave_pairs(words, std::make_index_sequence<4>());
  gather_quarters(words, std::make_index_sequence<4>());
  ((words[I] = big_endian(words[I])), ...);
}

// Renames the words of the state in each round, instead of moving them by one.
template <std::size_t Round>
WEFT_WIDE_INLINE void one_round(Words* state, Words* words) {
  const auto at = [state](std::size_t word) WEFT_WIDE -> Words& { return state[(word - Round) % 8]; };
  Words& w = words[Round % 16];
  if constexpr (Round >= 16) {
    w = _mm512_add_epi32(w, xor_of_rotations_and_shift<7, 18, 3>(words[(Round + 1) % 16]));
    w = _mm512_add_epi32(w, xor_of_rotations_and_shift<17, 19, 10>(words[(Round + 14) % 16]));
    w = _mm512_add_epi32(w, words[(Round + 9) % 16]);
  }
  Words sum = _mm512_add_epi32(at(7), _mm512_add_epi32(w, _mm512_set1_epi32(static_cast<int>(kSha256Rounds[Round]))));
  sum = _mm512_add_epi32(sum, _mm512_ternarylogic_epi32(at(4), at(5), at(6), kFirstChooses));
  sum = _mm512_add_epi32(sum, xor_of_rotations<6, 11, 25>(at(4)));
  at(3) = _mm512_add_epi32(at(3), sum);
  sum = _mm512_add_epi32(sum, _mm512_ternarylogic_epi32(at(0), at(1), at(2), kMajority));
  at(7) = _mm512_add_epi32(sum, xor_of_rotations<2, 13, 22>(at(0)));
}

template <std::size_t... Round>
WEFT_WIDE_INLINE void all_rounds(Words* state, Words* words, std::index_sequence<Round...>) {
  (one_round<Round>(state, words), ...);
}

template <std::size_t... I>
WEFT_WIDE_INLINE void feed(Sha256WideState& all, const std::array<const std::byte*, kSha256WideLanes>& data,
                           std::size_t blocks, std::index_sequence<I...>) {
  Words state[] = {_mm512_load_si512(all.words[I])...};
  for (std::size_t block = 0; block < blocks; ++block) {
    const Words before[] = {state[I]...};
    Words words[16];
    load_blocks(words, data, 64 * block, std::make_index_sequence<16>());
    all_rounds(state, words, std::make_index_sequence<64>());
    ((state[I] = _mm512_add_epi32(state[I], before[I])), ...);
  }
  (_mm512_store_si512(all.words[I], state[I]), ...);
}

}  // namespace

bool sha256_wide_usable() {
  static const bool usable = __builtin_cpu_supports("avx512f") != 0;
  return usable;
}

WEFT_WIDE void sha256_wide_update(Sha256WideState& state, const std::array<const std::byte*, kSha256WideLanes>& data,
                                  std::size_t blocks) {
  feed(state, data, blocks, std::make_index_sequence<8>());
}

}  // namespace weft

#else

namespace weft {

bool sha256_wide_usable() {
  return false;
}
void sha256_wide_update(Sha256WideState&, const std::array<const std::byte*, kSha256WideLanes>&, std::size_t) {}

}  // namespace weft

#endif
