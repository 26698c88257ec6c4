// Elements of float types as doubles.
#pragma once

#include <cstddef>
#include <span>

#include "weft/dtype.h"

namespace weft {

// True for f16, bf16, f32, f64 and the 8-bit floats: types with one element per block that can be a fraction.
bool is_float(DType type);

// `bytes` holds whole little-endian elements, one for each element of `out`. Every value is exact; a NaN stays a NaN.
void to_doubles(DType type, std::span<const std::byte> bytes, std::span<double> out);

}  // namespace weft
