// Elements of float types as doubles.
#pragma once

#include <cstddef>
#include <span>

#include "weft/dtype.h"

namespace weft {

// f16, bf16, f32, f64 and the 8-bit floats: types of one element a block whose elements are numbers with a fraction.
bool is_float(DType type);

// `bytes`: whole little-endian elements, as many as `out` has room for. Every value is exact; a NaN stays one.
void to_doubles(DType type, std::span<const std::byte> bytes, std::span<double> out);

}  // namespace weft
