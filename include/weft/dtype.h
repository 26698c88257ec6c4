// Element types of tensors (base/tensors/dtype.cc): all types of safetensors, npy and GGUF. Their numbers are stored in
// manifests: never renumber, only append. A type has blocks (block_elements logical elements in block_bytes bytes); a
// plain type has one element per block. Sources: safetensors README, numpy.lib.format, ggml.h (block sizes of GGUF
// quantised types).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/result.h"

namespace weft {

enum class DType : std::uint8_t {
  boolean = 1,
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  f16,
  bf16,
  f32,
  f64,
  c64,
  c128,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  f4,
  f6_e2m3,
  f6_e3m2,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  q4_0 = 64,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q8_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  q8_k,
  iq2_xxs,
  iq2_xs,
  iq3_xxs,
  iq1_s,
  iq4_nl,
  iq3_s,
  iq2_s,
  iq4_xs,
  iq1_m,
  tq1_0,
  tq2_0,
  mxfp4,
  nvfp4,
  q1_0,
  // Any other npy type. Its numpy descr is in FoundTensor::descr.
  npy_other = 255,
};

struct DTypeInfo {
  DType type;
  std::string_view name;         // weft's name, upper case as safetensors writes it ("F32", "Q4_0")
  std::uint32_t block_elements;  // 1 for plain types
  std::uint32_t block_bytes;
  std::string_view npy_descr;  // little-endian numpy descr; "|V2" and the like if numpy lacks the type
};

// nullptr if the number or name is not in the table.
const DTypeInfo* dtype_info(DType type);
const DTypeInfo* dtype_by_name(std::string_view name);
std::span<const DTypeInfo> all_dtypes();

using Shape = std::vector<std::uint64_t>;    // outermost (slowest) dimension first; empty is a scalar
using Strides = std::vector<std::uint64_t>;  // for each dimension of a shape, in elements

// Returns the number of elements of a shape; nothing if it does not fit in 64 bits.
std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape);
// Returns the bytes of a tensor. Fails if they do not fit in 64 bits, or if the elements do not fill whole blocks.
Result<std::uint64_t> tensor_bytes(DType type, std::span<const std::uint64_t> shape);
// Returns the bytes of memory from the first element to the end of the last one; 0 if there are no elements.
// Errc::invalid: the strides do not match the dimensions in number, the type is packed or unknown, or the result is
// 2^63 or more.
Result<std::uint64_t> strided_bytes(DType type, std::span<const std::uint64_t> shape,
                                    std::span<const std::uint64_t> strides);
// Returns the strides of C order, which mean the same as no strides.
Strides c_strides(std::span<const std::uint64_t> shape);
// Returns text such as "[768, 3072]".
std::string shape_text(std::span<const std::uint64_t> shape);
// Returns the dict of an npy header, in C order: "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }".
std::string npy_dict_text(std::string_view descr, std::span<const std::uint64_t> shape);

}  // namespace weft
