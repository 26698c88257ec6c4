// An import of files that another process found and opens: a client of the daemon.
#pragma once

#include <vector>

#include "publish/gather.h"
#include "weft/programs/operations.h"

namespace weft {

// Returns the files of options.paths, of a model or a data set, for prepare_sources(). Refuses names, texts and metrics
// that no version can have.
Result<GatheredFiles> gather(const ImportOptions& options, const std::string& store_path);

// As prepare_import(), but ignores options.paths: `sources` come from gather() or check_sources().
Result<PreparedImport> prepare_sources(const ImportOptions& options, std::vector<SourceFile> sources,
                                       Progress& progress);
// Refuses names, texts and metrics that no version can have.
Status check_description(const ImportOptions& options);

}  // namespace weft
