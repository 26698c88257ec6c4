#include "base/floats.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace weft {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The layout of a small float: sign, exponent, mantissa. Sources: IEEE 754; "FP8 Formats for Deep Learning" (E4M3 has
// no infinity and one NaN); the FNUZ types have no negative zero, whose code is their one NaN.
enum class Special : std::uint8_t { ieee, one_nan, fnuz };
struct Small {
  int mantissa_bits;
  int bias;
  Special special;
};

double small_value(unsigned code, unsigned bits, const Small& how) {
  const unsigned magnitude = code & ((1U << (bits - 1)) - 1);
  const unsigned exponent_max = ((1U << (bits - 1)) - 1) >> how.mantissa_bits;
  const unsigned mantissa = magnitude & ((1U << how.mantissa_bits) - 1);
  const unsigned exponent = magnitude >> how.mantissa_bits;
  const double sign = (code >> (bits - 1)) != 0 ? -1 : 1;
  if (how.special == Special::fnuz && code == 1U << (bits - 1)) return kNan;
  if (how.special == Special::one_nan && magnitude == (1U << (bits - 1)) - 1) return kNan;
  if (how.special == Special::ieee && exponent == exponent_max) return mantissa == 0 ? sign * kInfinity : kNan;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - how.bias - how.mantissa_bits);
  const unsigned whole = mantissa | (1U << how.mantissa_bits);
  return sign * std::ldexp(whole, static_cast<int>(exponent) - how.bias - how.mantissa_bits);
}

using Values8 = std::array<double, 256>;

Values8 values_of(const Small& how) {
  Values8 values{};
  for (unsigned code = 0; code < values.size(); ++code) values[code] = small_value(code, 8, how);
  return values;
}

// E8M0 is a power of two without sign; 0xff is its NaN.
Values8 powers_of_two() {
  Values8 values{};
  for (int code = 0; code < 255; ++code) values[static_cast<std::size_t>(code)] = std::ldexp(1.0, code - 127);
  values[255] = kNan;
  return values;
}

const Values8* table8(DType type) {
  static const Values8 e4m3 = values_of({3, 7, Special::one_nan});
  static const Values8 e5m2 = values_of({2, 15, Special::ieee});
  static const Values8 e4m3fnuz = values_of({3, 8, Special::fnuz});
  static const Values8 e5m2fnuz = values_of({2, 16, Special::fnuz});
  static const Values8 e8m0 = powers_of_two();
  switch (type) {
    case DType::f8_e4m3:
      return &e4m3;
    case DType::f8_e5m2:
      return &e5m2;
    case DType::f8_e4m3fnuz:
      return &e4m3fnuz;
    case DType::f8_e5m2fnuz:
      return &e5m2fnuz;
    case DType::f8_e8m0:
      return &e8m0;
    default:
      return nullptr;
  }
}

const std::array<float, 65536>& halves() {
  static const auto table = [] {
    std::array<float, 65536> values{};
    for (unsigned code = 0; code < values.size(); ++code)
      values[code] = static_cast<float>(small_value(code, 16, {10, 15, Special::ieee}));
    return values;
  }();
  return table;
}

template <class Raw, class Convert>
void convert(std::span<const std::byte> bytes, std::span<double> out, const Convert& value) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Raw raw;
    std::memcpy(&raw, bytes.data() + i * sizeof raw, sizeof raw);
    out[i] = value(raw);
  }
}

}  // namespace

bool is_float(DType type) {
  return type == DType::f16 || type == DType::bf16 || type == DType::f32 || type == DType::f64 ||
         table8(type) != nullptr;
}

void to_doubles(DType type, std::span<const std::byte> bytes, std::span<double> out) {
  switch (type) {
    case DType::f16: {
      const auto& table = halves();
      return convert<std::uint16_t>(bytes, out, [&](std::uint16_t raw) { return double{table[raw]}; });
    }
    case DType::bf16:
      return convert<std::uint16_t>(
          bytes, out, [](std::uint16_t raw) { return double{std::bit_cast<float>(std::uint32_t{raw} << 16U)}; });
    case DType::f32:
      return convert<float>(bytes, out, [](float raw) { return double{raw}; });
    case DType::f64:
      return convert<double>(bytes, out, [](double raw) { return raw; });
    default:
      break;
  }
  if (const Values8* table = table8(type))
    convert<std::uint8_t>(bytes, out, [&](std::uint8_t raw) { return (*table)[raw]; });
}

}  // namespace weft
