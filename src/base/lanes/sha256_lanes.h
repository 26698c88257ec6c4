// SHA-256 of two messages at once by the x86 SHA instructions. One message leaves the unit idle half of the time,
// because each step waits for the previous one. Two messages take turns, and each is as fast as alone.
#pragma once

#include <cstddef>

#include "base/lanes/sha256_rounds.h"

namespace weft {

// True if this build and this CPU have the instructions.
bool sha256_lanes_usable();

// Feeds `blocks` blocks of 64 bytes from `a` and `b` to the two states. Call it only if usable.
void sha256_lanes_update(Sha256State& state_a, const std::byte* a, Sha256State& state_b, const std::byte* b,
                         std::size_t blocks);

}  // namespace weft
