// Upgrades a mount: asks its supervisor to replace the server by another program.
#pragma once

#include <string>

#include "weft/result.h"

namespace weft {

// `control` is the abstract name of the supervisor's socket, `program` an absolute path. Returns when the new program
// serves the mount.
Status ask_for_upgrade(const std::string& control, const std::string& program);

}  // namespace weft
