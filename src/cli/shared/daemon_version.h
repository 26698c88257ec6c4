// Two installations at once: a daemon of another version than this weft.
#pragma once

#include <string>

#include "base/json_value.h"
#include "cli/shared/environment.h"

namespace weft {

// Returns one line that names both programs and what to do, if the daemon is of another version. An empty text means
// that the versions are equal or that the daemon names none. `status` is the daemon's answer to the request "status".
std::string version_problem(const JsonValue& status, const CliEnvironment& environment);

}  // namespace weft
