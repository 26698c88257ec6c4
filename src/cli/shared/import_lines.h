// The lines that a publish prints.
#pragma once

#include "cli/shared/context.h"
#include "weft/programs/operations.h"

namespace weft {

// Prints the version, what of it is new, and its parents.
void print_import(const Context& context, const ImportReport& report, bool dataset);

}  // namespace weft
