// Where versions come from: edges to parents, and shared tensors of two versions. Pure and deterministic; reads no
// store.
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

// An edge from a version to a parent. The parent was published earlier, so there are no cycles.
struct ParentRef {
  std::string model;
  std::uint64_t number = 0;
  // True if the parent was declared (--parent, a model card, an adapter's configuration), false if it was found by
  // shared bytes.
  bool declared = true;
  // Tensors of the child that the parent has too: with equal content, element type and shape, under any name.
  std::uint64_t same_tensors = 0;
  std::uint64_t same_bytes = 0;
  std::uint64_t id = 0;  // the parent's VersionId; 0 before a store has the version, or if its journal lost the parent

  bool verified() const { return same_tensors > 0; }
};

// Returns "declared", "verified (98 of 104 tensors, 80.6 MiB)" or "declared, verified (…)". `tensors` is the number of
// the child's tensors, 0 if not known.
std::string edge_text(const ParentRef& parent, std::uint64_t tensors);
// Returns {"model":"org/bert","version":2,"declared":true,"same_tensors":98,"same_bytes":84515840}.
std::string edge_json(const ParentRef& parent);

// The non-empty tensors of `child` that `parent` has too.
struct Shared {
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
};
Shared shared_tensors(const Manifest& child, const Manifest& parent);

}  // namespace weft
