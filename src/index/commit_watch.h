// Watches an index for commits by inotify. LMDB commits with write(2), which inotify reports for every process. A
// rebuild renames a new file into place.
#pragma once

#include <memory>

#include "os/safe_path.h"
#include "weft/result.h"
#include "weft/store/commits.h"

namespace weft {

// `index_dir` holds data.mdb.
Result<std::unique_ptr<CommitWatch>> watch_index(const SafePath& index_dir);

}  // namespace weft
