// The files of torch.save since PyTorch 1.6, and TorchScript: a zip archive with a pickle, data.pkl, and a stored
// member for each storage.
#pragma once

#include "format/zip_directory.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// True if the archive has a data.pkl at its top, or in a directory at its top.
bool is_torch_zip(const ZipDirectory& members);

// Returns the tensors, named by their keys in the saved value, and the globals of the pickles as metadata. If a pickle
// cannot be read, the layout is opaque and has the reason, and the globals as far as they were read. Errors come from
// the source.
Result<Layout> read_torch_zip(ByteSource& archive, const ZipDirectory& members);

}  // namespace weft
