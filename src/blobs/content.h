#pragma once

#include "weft/node.h"

namespace weft {

// content_of(manifest) where a tree of the same shape (paths, tensors; ids do not matter) is at hand.
VersionContent content_from(const VersionTree& tree, const Manifest& manifest);

}  // namespace weft
