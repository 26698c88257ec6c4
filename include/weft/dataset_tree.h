// The trees that users see of one version of a data set: what was published, at datasets/, and its records, at records/.
#pragma once

#include <cstdint>

#include "weft/manifest.h"
#include "weft/result.h"

namespace weft {

// How many inode numbers a version of this content takes: those of its tree (weft/tree.h), and of a data set more.
Result<std::uint64_t> count_nodes(const Manifest& manifest);

}  // namespace weft
