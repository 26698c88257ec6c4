// The bytes of packs as windows that peers may read, or as a copy for the head of an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "weft/bytes/pack.h"
#include "weft/bytes/run.h"
#include "weft/bytes/source.h"
#include "weft/bytes/window_memory.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::string_view kPeerRead = "a pack that a peer reads";  // for messages

std::uint64_t size_of(std::span<const Run> segments);  // bytes
// Returns the pack segments with the bytes of these runs, without the first `skip` bytes of the first chunk. `places`:
// of the runs, all local.
std::vector<Run> segments_of(std::span<const ChunkRun> runs, std::vector<OpenPlace> places, std::uint64_t skip = 0);
Result<std::vector<std::byte>> copy_of(std::span<const Run> segments);
// Returns windows on the packs of `segments`, one for each. If the bytes are few, or the segments too many, returns one
// window on a copy.
Result<std::vector<std::unique_ptr<WindowMemory>>> windows_on(std::span<const Run> segments);

}  // namespace weft
