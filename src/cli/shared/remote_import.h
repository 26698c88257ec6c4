// `weft import` where a daemon has the store: it publishes, this process opens the files with its own rights.
#pragma once

#include "cli/shared/context.h"
#include "weft/node.h"

namespace weft {

// As import_paths.
Result<ImportReport> import_through(control::Client& daemon, const Context& context, const ImportOptions& options,
                                    Progress& progress);

}  // namespace weft
