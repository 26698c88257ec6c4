// STORE/scrub, a text of JSON: what the scrubs of a store have found, and where the next one goes on.
#pragma once

#include <cstddef>
#include <string>

#include "os/safe_path.h"
#include "weft/result.h"
#include "weft/scrub.h"

namespace weft {

inline constexpr std::size_t kScrubLinesMax = 100;  // lines of a pass that are kept

// Durable, and whole or not at all.
Result<ScrubState> read_scrub_state(const SafePath& store_path);  // as that of scrub.h
Status write_scrub_state(const SafePath& store_path, const ScrubState& state);
Status remove_scrub_state(const SafePath& store_path);  // fine when it is not there

}  // namespace weft
