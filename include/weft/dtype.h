// Element types of tensors: the union of what safetensors, npy and GGUF name. Numbers are stored in manifests: never
// renumber, only append. A type has blocks (block_elements logical elements in block_bytes bytes); plain types have one
// element a block. Sources: safetensors README, numpy.lib.format, ggml.h (block sizes of GGUF quantised types).
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
  // npy types without another name keep their numpy descr in FoundTensor::descr.
  npy_other = 255,
};

struct DTypeInfo {
  DType type;
  std::string_view name;         // weft's name, upper case as safetensors writes it ("F32", "Q4_0")
  std::uint32_t block_elements;  // 1 for plain types
  std::uint32_t block_bytes;
  std::string_view npy_descr;  // little-endian numpy descr; "|V2" and the like where numpy has no such type
};

// nullptr for a number or name that is not in the table.
const DTypeInfo* dtype_info(DType type);
const DTypeInfo* dtype_by_name(std::string_view name);
std::span<const DTypeInfo> all_dtypes();

using Shape = std::vector<std::uint64_t>;    // outermost (slowest) dimension first; empty is a scalar
using Strides = std::vector<std::uint64_t>;  // for each dimension of a shape, in elements

// Elements of a shape, or nothing when the product does not fit in 64 bits.
std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape);
// Bytes of a tensor; an error when the product wraps, or the elements do not fill whole blocks.
Result<std::uint64_t> tensor_bytes(DType type, std::span<const std::uint64_t> shape);
// Bytes of memory from the first element to the end of the last one; 0 when there are no elements. Errc::invalid: not
// one stride for each dimension, a type of packed elements, an unknown type, or 2^63 bytes and more.
Result<std::uint64_t> strided_bytes(DType type, std::span<const std::uint64_t> shape,
                                    std::span<const std::uint64_t> strides);
// The strides that say the same as none.
Strides c_strides(std::span<const std::uint64_t> shape);
// "[768, 3072]"
std::string shape_text(std::span<const std::uint64_t> shape);

}  // namespace weft
