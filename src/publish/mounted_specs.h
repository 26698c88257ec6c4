// Turns a path in a mount of the store into the version that it shows.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "weft/result.h"
#include "weft/store/snapshot.h"

namespace weft {

// Returns MODEL@V, or MODEL, for the path of a version, of a model, or of anything in either, in a tree of a mount; the
// model or version may be none of the store. Returns nothing for any other text. `mounts` are the directories where the
// store is mounted. Compares texts alone: `path` may come from a file that anybody may have written, and the process
// may serve the mount, so no path is looked up.
Result<std::optional<std::string>> mounted_spec(Snapshot& snapshot, std::span<const std::string> mounts,
                                                const std::string& path);

}  // namespace weft
