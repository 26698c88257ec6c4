// Random architectures, and how much of them is the same by walking them, without a hash.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "weft/arch.h"

namespace weft::testing {

using Random = std::mt19937_64;

// Chains, skips, branches that merge in order or as a sum, equal siblings: of few kinds, so that much is shared.
ArchGraph random_graph(Random& random);
// 50 to 200 vertices in a chain, from some of which skips lead far on, and branches that merge much later.
ArchGraph long_graph(Random& random);
// One more like it: a layer changed, one added behind another, or the end cut off.
ArchGraph changed_graph(const ArchGraph& graph, Random& random);

// Walks `a` from its inputs on: a vertex is visited once by each of its inputs that has its like in `b`, and looked at
// when its visits are its in-degree. It is like a vertex of `b` when both say the same of themselves and their inputs
// are alike, one by one, in any order where they are summed. Each vertex of `b` answers for one of `a`.
std::uint64_t walked_prefix(const ArchGraph& a, const ArchGraph& b);

}  // namespace weft::testing
