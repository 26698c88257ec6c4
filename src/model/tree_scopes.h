// Scopes: groups of tensors that share one naming. The plain files together are one scope. Each file that is set aside,
// because a name in it is taken, is a scope of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/model/manifest.h"
#include "weft/result.h"

namespace weft {

struct Scope {
  std::string dir;                   // "@<escaped path>"; "" for the plain scope
  std::vector<std::uint32_t> files;  // indices, ascending
};

// Returns the plain scope first (it may be empty), then the files that are set aside. Errc::invalid as
// VersionTree::build(), except for depth.
Result<std::vector<Scope>> plan_scopes(const Manifest& manifest);

}  // namespace weft
