// npz: a zip archive of npy files, as numpy.savez and numpy.savez_compressed write it.
#pragma once

#include "format/zip_directory.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// True if all members are npy files. An archive without members is no npz by its content.
bool is_npz(const ZipDirectory& members);

// Returns the arrays of the members, named without ".npy". A compressed array, and one that weft does not know, is
// hidden. Other members are no arrays. Errors come from the source.
Result<Layout> read_npz(ByteSource& archive, const ZipDirectory& members);

}  // namespace weft
