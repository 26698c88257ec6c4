// Which tensors of a version share one naming: those of the plain files together, and those of each file that is set
// aside, because a name in it is taken, by themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/manifest.h"
#include "weft/result.h"

namespace weft {

struct Scope {
  std::string dir;                   // "@<escaped path>"; "" for the plain place
  std::vector<std::uint32_t> files;  // indices, ascending
};

// The plain place first (it may be empty), then the files that are set aside. Errc::invalid as VersionTree::build says,
// but for depth.
Result<std::vector<Scope>> plan_scopes(const Manifest& manifest);

}  // namespace weft
