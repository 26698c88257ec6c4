// Cuts a file into extents: its tensors, and the skeleton bytes between them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/content.h"
#include "weft/format.h"

namespace weft {

struct Cut {
  std::vector<Range> ranges;                 // in order, touching, covering the file, none empty
  std::vector<std::uint32_t> tensor_extent;  // for each tensor its range; kNoExtent for one of no bytes
};

// `tensors` as Layout promises them; what breaks that promise is Errc::internal.
Result<Cut> cut_file(std::uint64_t size, std::span<const TensorExtent> tensors);

}  // namespace weft
