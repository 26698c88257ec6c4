// The boxes that a format finds, as the grid of a tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// A C-order array at an offset of a file. It has the elements from `begin` on, `size` in each dimension. Those beyond
// the tensor's shape are padding.
struct TensorBox {
  std::uint32_t file = 0;    // as TensorPart::file
  std::uint64_t offset = 0;  // bytes from the start of the file
  Shape begin;
  Shape size;
};

// Sets the parts of a tensor, whose type and shape are set, and its grid if it needs one. The boxes come in any order.
// An empty one is ignored. Takes n log n steps for n boxes.
// Errc::unsupported: the boxes overlap, leave elements out, or are no cells of a grid; or the type is packed. The
// message is one phrase, as the reason of a hidden tensor. The caller checks that each box lies within its file:
// box_bytes() has its length.
Status place_boxes(FoundTensor& tensor, std::vector<TensorBox> boxes);

// The same for boxes that are known to be the cells of a grid, in C order: their files and offsets. Takes n steps, and
// no memory for a box but its part.
Status place_cells(FoundTensor& tensor, Borders borders, std::vector<TensorPart> cells);

// Returns the bytes of a box; nothing if they do not fit in 64 bits, or the type is packed or unknown.
std::optional<std::uint64_t> box_bytes(DType type, const TensorBox& box);

}  // namespace weft
