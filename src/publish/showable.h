// The tensors of a file whose names no tree can show.
#pragma once

#include "weft/model/manifest.h"

namespace weft {

// Moves a tensor to the hidden ones if its name is too long for a file of a tree. If no tensor or no name is left that
// the trees can show, the file loses all of them and gets the reason (kNoTensors). The globals of a pickle stay. The
// library of the format reads the file, so it is published as it is.
void hide_unshowable(File& file);

}  // namespace weft
