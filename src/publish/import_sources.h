// An import whose files somebody else has found, and opens: a client of the daemon.
#pragma once

#include <vector>

#include "publish/gather.h"
#include "weft/node.h"

namespace weft {

// As prepare_import, but that options.paths is not looked at: `sources` are as gather_sources or check_sources return
// them.
Result<PreparedImport> prepare_sources(const ImportOptions& options, std::vector<SourceFile> sources,
                                       Progress& progress);
// Names, texts and figures that no version can have.
Status check_description(const ImportOptions& options);

}  // namespace weft
