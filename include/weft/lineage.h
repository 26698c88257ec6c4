// Where versions come from: edges to parents, kin as a graph, what two versions share. Pure: no store is asked here.
// What is drawn is drawn by itself: no program is called. Every function is deterministic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/dtype.h"
#include "weft/manifest.h"
#include "weft/names.h"

namespace weft {

// An edge from a version to a parent, which was published before it: there are no cycles.
struct ParentRef {
  std::string model;
  std::uint64_t number = 0;
  // Somebody said so (--parent, a model card, an adapter's configuration); else found by what they share.
  bool declared = true;
  // Tensors of the child that the parent has too: by content, element type and shape, under whatever name.
  std::uint64_t same_tensors = 0;
  std::uint64_t same_bytes = 0;
  std::uint64_t id = 0;  // the parent's VersionId; 0 until a store has taken the version, or when its journal lost it

  bool verified() const { return same_tensors > 0; }
};

// "declared", "verified (98 of 104 tensors, 80.6 MiB)" or "declared, verified (…)"; `tensors` of the child, 0 where it
// is not known.
std::string edge_text(const ParentRef& parent, std::uint64_t tensors);
// {"model":"org/bert","version":2,"declared":true,"same_tensors":98,"same_bytes":84515840}
std::string edge_json(const ParentRef& parent);

// Tensors of `child`, with bytes, that `parent` has too.
struct Shared {
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
};
Shared shared_tensors(const Manifest& child, const Manifest& parent);

}  // namespace weft
