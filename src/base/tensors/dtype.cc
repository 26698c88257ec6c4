#include "weft/dtype.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace weft {
namespace {

// GGUF block sizes: ggml-common.h (QK_K = 256).
constexpr std::array kTypes = {
    DTypeInfo{DType::boolean, "BOOL", 1, 1, "|b1"},
    DTypeInfo{DType::u8, "U8", 1, 1, "|u1"},
    DTypeInfo{DType::i8, "I8", 1, 1, "|i1"},
    DTypeInfo{DType::u16, "U16", 1, 2, "<u2"},
    DTypeInfo{DType::i16, "I16", 1, 2, "<i2"},
    DTypeInfo{DType::u32, "U32", 1, 4, "<u4"},
    DTypeInfo{DType::i32, "I32", 1, 4, "<i4"},
    DTypeInfo{DType::u64, "U64", 1, 8, "<u8"},
    DTypeInfo{DType::i64, "I64", 1, 8, "<i8"},
    DTypeInfo{DType::f16, "F16", 1, 2, "<f2"},
    DTypeInfo{DType::bf16, "BF16", 1, 2, "|V2"},
    DTypeInfo{DType::f32, "F32", 1, 4, "<f4"},
    DTypeInfo{DType::f64, "F64", 1, 8, "<f8"},
    DTypeInfo{DType::c64, "C64", 1, 8, "<c8"},
    DTypeInfo{DType::c128, "C128", 1, 16, "<c16"},
    DTypeInfo{DType::f8_e4m3, "F8_E4M3", 1, 1, "|V1"},
    DTypeInfo{DType::f8_e5m2, "F8_E5M2", 1, 1, "|V1"},
    DTypeInfo{DType::f8_e8m0, "F8_E8M0", 1, 1, "|V1"},
    DTypeInfo{DType::f4, "F4", 2, 1, "|V1"},
    DTypeInfo{DType::f6_e2m3, "F6_E2M3", 4, 3, "|V3"},
    DTypeInfo{DType::f6_e3m2, "F6_E3M2", 4, 3, "|V3"},
    DTypeInfo{DType::f8_e4m3fnuz, "F8_E4M3FNUZ", 1, 1, "|V1"},
    DTypeInfo{DType::f8_e5m2fnuz, "F8_E5M2FNUZ", 1, 1, "|V1"},
    DTypeInfo{DType::q4_0, "Q4_0", 32, 18, "|V18"},
    DTypeInfo{DType::q4_1, "Q4_1", 32, 20, "|V20"},
    DTypeInfo{DType::q5_0, "Q5_0", 32, 22, "|V22"},
    DTypeInfo{DType::q5_1, "Q5_1", 32, 24, "|V24"},
    DTypeInfo{DType::q8_0, "Q8_0", 32, 34, "|V34"},
    DTypeInfo{DType::q8_1, "Q8_1", 32, 36, "|V36"},
    DTypeInfo{DType::q2_k, "Q2_K", 256, 84, "|V84"},
    DTypeInfo{DType::q3_k, "Q3_K", 256, 110, "|V110"},
    DTypeInfo{DType::q4_k, "Q4_K", 256, 144, "|V144"},
    DTypeInfo{DType::q5_k, "Q5_K", 256, 176, "|V176"},
    DTypeInfo{DType::q6_k, "Q6_K", 256, 210, "|V210"},
    DTypeInfo{DType::q8_k, "Q8_K", 256, 292, "|V292"},
    DTypeInfo{DType::iq2_xxs, "IQ2_XXS", 256, 66, "|V66"},
    DTypeInfo{DType::iq2_xs, "IQ2_XS", 256, 74, "|V74"},
    DTypeInfo{DType::iq3_xxs, "IQ3_XXS", 256, 98, "|V98"},
    DTypeInfo{DType::iq1_s, "IQ1_S", 256, 50, "|V50"},
    DTypeInfo{DType::iq4_nl, "IQ4_NL", 32, 18, "|V18"},
    DTypeInfo{DType::iq3_s, "IQ3_S", 256, 110, "|V110"},
    DTypeInfo{DType::iq2_s, "IQ2_S", 256, 82, "|V82"},
    DTypeInfo{DType::iq4_xs, "IQ4_XS", 256, 136, "|V136"},
    DTypeInfo{DType::iq1_m, "IQ1_M", 256, 56, "|V56"},
    DTypeInfo{DType::tq1_0, "TQ1_0", 256, 54, "|V54"},
    DTypeInfo{DType::tq2_0, "TQ2_0", 256, 66, "|V66"},
    DTypeInfo{DType::mxfp4, "MXFP4", 32, 17, "|V17"},
    DTypeInfo{DType::nvfp4, "NVFP4", 64, 36, "|V36"},
    DTypeInfo{DType::q1_0, "Q1_0", 128, 18, "|V18"},
    DTypeInfo{DType::npy_other, "NPY", 1, 1, ""},
};

}  // namespace

std::span<const DTypeInfo> all_dtypes() {
  return kTypes;
}

const DTypeInfo* dtype_info(DType type) {
  const auto* it = std::find_if(kTypes.begin(), kTypes.end(), [&](const DTypeInfo& info) { return info.type == type; });
  return it == kTypes.end() ? nullptr : it;
}

const DTypeInfo* dtype_by_name(std::string_view name) {
  const auto* it = std::find_if(kTypes.begin(), kTypes.end(), [&](const DTypeInfo& info) { return info.name == name; });
  return it == kTypes.end() ? nullptr : it;
}

std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape) {
  std::uint64_t count = 1;
  bool empty = false;
  for (std::uint64_t dimension : shape) {
    if (dimension == 0) empty = true;
    if (!empty && __builtin_mul_overflow(count, dimension, &count)) return std::nullopt;
  }
  return empty ? 0 : count;
}

Result<std::uint64_t> tensor_bytes(DType type, std::span<const std::uint64_t> shape) {
  const DTypeInfo* info = dtype_info(type);
  if (info == nullptr) return Error{Errc::invalid, fmt::format("unknown element type {}", static_cast<int>(type))};
  std::optional<std::uint64_t> elements = element_count(shape);
  if (!elements) return Error{Errc::invalid, fmt::format("shape {} has more than 2^64 elements", shape_text(shape))};
  if (*elements % info->block_elements != 0) {
    return Error{Errc::invalid, fmt::format("shape {}: {} elements are not whole {} blocks of {}", shape_text(shape),
                                            *elements, info->name, info->block_elements)};
  }
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(*elements / info->block_elements, std::uint64_t{info->block_bytes}, &bytes))
    return Error{Errc::invalid, fmt::format("shape {} of {} has more than 2^64 bytes", shape_text(shape), info->name)};
  return bytes;
}

Result<std::uint64_t> strided_bytes(DType type, std::span<const std::uint64_t> shape,
                                    std::span<const std::uint64_t> strides) {
  constexpr std::uint64_t kBytesMax = 1ULL << 63U;
  const DTypeInfo* info = dtype_info(type);
  if (info == nullptr || info->block_elements != 1 || type == DType::npy_other)
    return Error{Errc::invalid, fmt::format("element type {} has no strides", static_cast<int>(type))};
  if (strides.size() != shape.size())
    return Error{Errc::invalid, fmt::format("expected {} strides, got {}", shape.size(), strides.size())};
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) return std::uint64_t{0};
  std::uint64_t elements = 1, step = 0, bytes = 0;
  bool wraps = false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    wraps |= __builtin_mul_overflow(shape[i] - 1, strides[i], &step);
    wraps |= __builtin_add_overflow(elements, step, &elements);
  }
  wraps |= __builtin_mul_overflow(elements, std::uint64_t{info->block_bytes}, &bytes);
  if (wraps || bytes >= kBytesMax)
    return Error{Errc::invalid, fmt::format("shape {} with strides {} spans more than 2^63 bytes", shape_text(shape),
                                            shape_text(strides))};
  return bytes;
}

Strides c_strides(std::span<const std::uint64_t> shape) {
  Strides strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  return text + "]";
}

std::string npy_dict_text(std::string_view descr, std::span<const std::uint64_t> shape) {
  std::string dimensions;
  for (const std::uint64_t dimension : shape)
    dimensions += fmt::format("{}{}", dimensions.empty() ? "" : ", ", dimension);
  if (shape.size() == 1) dimensions += ',';
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dimensions);
}

}  // namespace weft
