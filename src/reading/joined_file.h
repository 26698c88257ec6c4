// A file that consists of other files in a row.
#pragma once

#include <memory>
#include <vector>

#include "weft/programs/vfs.h"

namespace weft {

// Opens the parts as one file. Each part is a constant file, which is read from the threads that read this one. There
// is at least one part.
std::shared_ptr<OpenFile> open_joined(std::vector<std::shared_ptr<OpenFile>> parts);

}  // namespace weft
