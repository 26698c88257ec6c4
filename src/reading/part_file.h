// A file that is a part of another file.
#pragma once

#include <memory>

#include "weft/content.h"
#include "weft/programs/vfs.h"

namespace weft {

// Opens `part` of `whole`, which must contain it.
std::shared_ptr<OpenFile> open_part(std::shared_ptr<OpenFile> whole, Range part);

}  // namespace weft
