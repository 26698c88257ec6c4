// Asking the supervisor of a mount to go on with another program.
#pragma once

#include <string>

#include "weft/result.h"

namespace weft {

// `control`: the abstract name of its socket; `program`: an absolute path. Returns when the new program serves.
Status ask_for_upgrade(const std::string& control, const std::string& program);

}  // namespace weft
