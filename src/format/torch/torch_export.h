// The files of torch.export.save (.pt2) since PyTorch 2.9: a zip archive with a stored member for each weight, and a
// JSON text that names them.
#pragma once

#include "format/zip_directory.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// True if the archive has a ROOT/data/weights/MODEL_weights_config.json.
bool is_torch_export(const ZipDirectory& members);

// Returns the weights by their names in the state dict, and the constants below "constants". Errc::unsupported: a JSON
// text is not one of PyTorch, or the archive is big-endian. Other errors come from the source.
Result<Layout> read_torch_export(ByteSource& archive, const ZipDirectory& members);

}  // namespace weft
