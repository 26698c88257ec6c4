// SHA-256 of sixteen messages at once, one word of each message in a register of AVX-512. On a CPU with both, this is
// about twice as fast as two messages by the SHA instructions (sha256_lanes.h), while most of the sixteen lanes are
// busy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft {

inline constexpr std::size_t kSha256WideLanes = 16;

// The states of all lanes, word by word: words[3][5] is the fourth word of the sixth lane's state.
struct alignas(64) Sha256WideState {
  std::uint32_t words[8][kSha256WideLanes];
};

// True if this build, this CPU and this kernel have the instructions.
bool sha256_wide_usable();

// Feeds `blocks` blocks of 64 bytes from data[i] to lane i, for each lane. Call it only if usable.
void sha256_wide_update(Sha256WideState& state, const std::array<const std::byte*, kSha256WideLanes>& data,
                        std::size_t blocks);

}  // namespace weft
