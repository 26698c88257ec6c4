// A whole safetensors file, laid out as the reference implementation's
// save_file() does: tensors by element type, larger types first, then by name;
// a compact header, padded with blanks to 8 bytes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/manifest.h"

namespace weft {

struct PlacedTensor {
  Tensor tensor;  // its extent's index is not read
  Extent extent;  // of its bytes; its offset is not read. The length is 0 for a tensor of no bytes
};

// All of them such as safetensors can hold; names are unique.
struct SafetensorsFile {
  std::string header;  // the bytes of the first extent, whose id has nothing but
                       // its length
  File file;
};
SafetensorsFile lay_out_safetensors(std::string path, std::vector<PlacedTensor> tensors,
                                    std::vector<std::pair<std::string, std::string>> metadata);

}  // namespace weft
