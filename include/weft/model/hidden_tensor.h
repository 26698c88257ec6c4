// A tensor that a format finds and weft cannot show (header only): compressed bytes, a type that weft lacks, a broken
// description.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weft/dtype.h"

namespace weft {

struct HiddenTensor {
  std::string name;            // UTF-8, as in the file
  std::uint64_t bytes = 0;     // bytes of the tensor in its file; 0: unknown
  std::string why;             // one phrase: "compressed"
  std::optional<DType> dtype;  // none: unknown; never npy_other
  Shape shape;                 // empty without a dtype
  bool operator==(const HiddenTensor&) const = default;
};

}  // namespace weft
