// Recognises a base model that is named by its path in a mount of the store, as PEFT writes it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weft/result.h"
#include "weft/store/snapshot.h"

namespace weft {

// Returns MODEL@V, or MODEL, for the path of a version, of a model, or of anything in a version, in models/, layers/,
// tensors/, lineage/ or hub/ of a mount; the model or version may be none of the store. Returns any other text as it
// is. `mounts` are the directories where the store is mounted. Compares texts alone: `base` comes from a file that
// anybody may have written, and the process may serve the mount, so no path is looked up.
Result<std::string> base_at(Snapshot& snapshot, std::span<const std::string> mounts, const std::string& base);

}  // namespace weft
