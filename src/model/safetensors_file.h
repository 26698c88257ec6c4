// A whole safetensors file in the layout of the reference implementation's save_file(): tensors by element type, larger
// types first, then by name; a compact header, padded with blanks to 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/model/manifest.h"

namespace weft {

struct PlacedTensor {
  Tensor tensor;  // the index of its extent is not read
  Extent extent;  // its bytes; the offset is not read. The length is 0 for a tensor of no bytes
};

// Returns the alignment of an element in bytes; 1 for packed types (two in a byte and the like). Containers begin with
// the largest.
std::uint32_t safetensors_alignment(DType dtype);

// As safetensors_header() of weft/model/tree.h. Each name loses its first `prefix_bytes`, and the header has this
// `__metadata__`, if there is any.
std::string safetensors_header(const Manifest& manifest, std::span<const TensorRef> tensors, std::size_t prefix_bytes,
                               const std::vector<std::pair<std::string, std::string>>& metadata);

// The tensors are such as safetensors can hold; names are unique.
struct SafetensorsFile {
  std::string header;  // the bytes of the first extent, whose id has only its length
  File file;
};
SafetensorsFile lay_out_safetensors(std::string path, std::vector<PlacedTensor> tensors,
                                    std::vector<std::pair<std::string, std::string>> metadata);

}  // namespace weft
