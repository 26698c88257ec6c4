// A whole safetensors file in the layout of the reference implementation's save_file(): tensors by element type, larger
// types first, then by name; a compact header, padded with blanks to 8 bytes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/model/manifest.h"

namespace weft {

struct PlacedTensor {
  Tensor tensor;  // the index of its extent is not read
  Extent extent;  // its bytes; the offset is not read. The length is 0 for a tensor of no bytes
};

// The tensors are such as safetensors can hold; names are unique.
struct SafetensorsFile {
  std::string header;  // the bytes of the first extent, whose id has only its length
  File file;
};
SafetensorsFile lay_out_safetensors(std::string path, std::vector<PlacedTensor> tensors,
                                    std::vector<std::pair<std::string, std::string>> metadata);

}  // namespace weft
