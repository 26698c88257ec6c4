// Lineage (model/lineage.cc): texts of the edges to parents and of sources, and shared tensors of two versions. Pure
// and deterministic; reads no store.
#pragma once

#include <cstdint>
#include <string>

#include "weft/model/manifest.h"
#include "weft/store_rows.h"

namespace weft {

// Returns "declared", "verified (98 of 104 tensors, 80.6 MiB)" or "declared, verified (…)". `tensors` is the number of
// the child's tensors, 0 if not known.
std::string edge_text(const ParentRef& parent, std::uint64_t tensors);
// Returns {"model":"org/bert","version":2,"declared":true,"same_tensors":98,"same_bytes":84515840}.
std::string edge_json(const ParentRef& parent);

// Returns {"endpoint":"https://huggingface.co","repository":"hf:org/bert",…} with the known facts of a source; "null"
// if none is known.
std::string source_json(const Provenance& source);

// The non-empty tensors of `child` that `parent` has too.
struct Shared {
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
};
Shared shared_tensors(const Manifest& child, const Manifest& parent);

}  // namespace weft
