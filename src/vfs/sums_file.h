// SHA256SUMS of a version: a line for each published file, by path, and then for each small file of a data set, in the
// order of keys.txt. A file without a digest (weft/model/manifest.h) has no line. The text never changes.
#pragma once

#include <memory>

#include "vfs/version_files.h"
#include "weft/programs/vfs.h"
#include "weft/result.h"

namespace weft {

// Opens the file. The lines are made when they are read, so that its size costs little.
Result<std::shared_ptr<OpenFile>> open_sums(VersionFiles& versions, VersionId version);

}  // namespace weft
