// An architecture as the index takes it.
#pragma once

#include <span>
#include <vector>

#include "weft/arch.h"
#include "weft/content.h"
#include "weft/version_content.h"

namespace weft {

// One item for each vertex: the id of the first that nothing tells apart, for each further one SHA-256("weft-copy-1" ‖
// id ‖ number of copies before it, 8 bytes little-endian), which needs the one before. So sets of items share as many
// as their graphs have in common. Ordered by the length of the longest path to them, then by id.
std::vector<ArchItem> items_of(const ArchGraph& graph, std::span<const Digest> ids);

}  // namespace weft
