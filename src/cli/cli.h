// The command line `weft`, callable from a test.
#pragma once

#include <string>
#include <vector>

#include "cli/shared/environment.h"

namespace weft {

// Runs `weft` with `args`, without the program's name. Returns the exit code: kExit… of environment.h, or 128 + the
// signal that stopped it.
int run_weft(const std::vector<std::string>& args, const CliEnvironment& environment);

}  // namespace weft
