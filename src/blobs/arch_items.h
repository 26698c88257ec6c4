// Turns an architecture into the items that the index stores.
#pragma once

#include <span>
#include <vector>

#include "weft/content.h"
#include "weft/model/arch.h"
#include "weft/model/version_content.h"

namespace weft {

// Returns one item per vertex. Of equal vertices, the first gets the vertex's id. Each further one gets
// SHA-256("weft-copy-1" ‖ id ‖ number of copies before it, 8 bytes little-endian), with the previous copy as its input.
// So two sets of items have as many items in common as their graphs have vertices. Ordered by the length of the longest
// path to the item, then by id.
std::vector<ArchItem> items_of(const ArchGraph& graph, std::span<const Digest> ids);

}  // namespace weft
