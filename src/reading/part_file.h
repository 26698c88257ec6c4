// A file that is a part of another one.
#pragma once

#include <memory>

#include "weft/content.h"
#include "weft/vfs.h"

namespace weft {

// `part` lies within `whole`.
std::shared_ptr<OpenFile> open_part(std::shared_ptr<OpenFile> whole, Range part);

}  // namespace weft
