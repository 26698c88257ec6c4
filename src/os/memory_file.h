// A file that lies in memory and in no directory.
#pragma once

#include <string>

#include "os/sys.h"

namespace weft {

Result<Fd> memory_file(const std::string& name);  // empty; `name` is for messages

}  // namespace weft
