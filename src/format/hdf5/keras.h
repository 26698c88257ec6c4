// Keras 3 files (.keras): a zip archive with the weights in an HDF5 file, which is a stored member.
#pragma once

#include "format/zip_directory.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

bool is_keras(const ZipDirectory& members);

// Returns the tensors of the weights, as read_hdf5() names them. Weights that weft cannot read are opaque, with the
// reason. Errors come from the source.
Result<Layout> read_keras(ByteSource& archive, const ZipDirectory& members);

}  // namespace weft
