// STORE/scrub, a JSON text: the results of a store's scrubs, and the position where the next one continues.
#pragma once

#include <cstddef>

#include "os/safe_path.h"
#include "weft/result.h"
#include "weft/store/scrub.h"

namespace weft {

inline constexpr std::size_t kScrubLinesMax = 100;  // lines stored per pass

// Writes are durable and atomic.
Result<ScrubState> read_scrub_state(const SafePath& store_path);  // see scrub.h
Status write_scrub_state(const SafePath& store_path, const ScrubState& state);
Status remove_scrub_state(const SafePath& store_path);  // no error if it is missing

}  // namespace weft
