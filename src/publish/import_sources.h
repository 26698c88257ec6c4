// An import whose files somebody else has found, and opens: a client of the daemon.
#pragma once

#include <vector>

#include "publish/gather.h"
#include "weft/node.h"

namespace weft {

// The files of options.paths, of a model or a data set, as they are given to the following.
struct GatheredFiles {
  std::vector<SourceFile> files;
  std::vector<std::string> left_out;  // lines for the user
};
Result<GatheredFiles> gather(const ImportOptions& options, const std::string& store_path);

// As prepare_import, but that options.paths is not looked at: `sources` are as gather() or check_sources() return them.
Result<PreparedImport> prepare_sources(const ImportOptions& options, std::vector<SourceFile> sources,
                                       Progress& progress);
// Names, texts and figures that no version can have.
Status check_description(const ImportOptions& options);

}  // namespace weft
