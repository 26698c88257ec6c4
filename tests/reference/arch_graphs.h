// Random architectures, and the number of their common vertices, computed by a walk without hashes.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "weft/model/arch.h"

namespace weft::testing {

using Random = std::mt19937_64;

// Returns chains, skips, branches that merge in order or as a sum, and equal siblings. Few kinds of vertices, so that
// much is shared.
ArchGraph random_graph(Random& random);
// Returns a chain of 50 to 200 vertices, with long skips and branches that merge much later.
ArchGraph long_graph(Random& random);
// Returns a variant of the graph: a changed layer, added vertices, or a truncated end.
ArchGraph changed_graph(const ArchGraph& graph, Random& random);

// Returns how many vertices of `a` are shared with `b`. Walks `a` from its inputs: a vertex is compared once all of its
// inputs have an equal in `b`. Two vertices are equal if their own description is equal and their inputs are equal pair
// by pair, in any order if they are summed. Each vertex of `b` counts once.
std::uint64_t walked_prefix(const ArchGraph& a, const ArchGraph& b);

}  // namespace weft::testing
