// Finds the files for a publish of a data set, without an entry in memory for each small one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "publish/gather.h"
#include "weft/programs/operations.h"
#include "weft/result.h"

namespace weft {

// The files are sorted by role, then path: files of their own, bundles in their order, and the file table
// (weft/model/manifest.h). open() makes bundles and table as files in memory; open each bundle once, in order. Accepts
// and refuses `paths` as gather_sources() does; also refuses two directories of one name. Leaves out a lock.mdb beside
// a data.mdb, and the lock file NAME-lock of an LMDB in the file NAME. Takes about 100 bytes of memory per small file.
Result<GatheredFiles> gather_dataset(std::span<const std::string> paths, const std::string& store_path,
                                     Links links = Links::refuse);

}  // namespace weft
