#include "base/floats.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace weft {
namespace {

double value8(DType type, unsigned code) {
  std::byte raw{static_cast<unsigned char>(code)};
  double out = 0;
  to_doubles(type, std::span(&raw, 1), std::span(&out, 1));
  return out;
}

double value16(DType type, unsigned code) {
  std::byte raw[] = {static_cast<std::byte>(code & 255U), static_cast<std::byte>(code >> 8U)};
  double out = 0;
  to_doubles(type, raw, std::span(&out, 1));
  return out;
}

}  // namespace

TEST_CASE("halves and bfloats are what IEEE 754 says") {
  CHECK(value16(DType::f16, 0x3c00) == 1);
  CHECK(value16(DType::f16, 0xc000) == -2);
  CHECK(value16(DType::f16, 0x0001) == std::ldexp(1.0, -24));
  CHECK(value16(DType::f16, 0x03ff) == std::ldexp(1023.0, -24));
  CHECK(value16(DType::f16, 0x7bff) == 65504);
  CHECK(value16(DType::f16, 0xfc00) == -INFINITY);
  CHECK(std::isnan(value16(DType::f16, 0x7c01)));
  CHECK(value16(DType::bf16, 0x3f80) == 1);
  CHECK(value16(DType::bf16, 0xc040) == -3);
  CHECK(std::isinf(value16(DType::bf16, 0x7f80)));
  CHECK(std::isnan(value16(DType::bf16, 0x7fc0)));
}

TEST_CASE("8-bit floats are what ml_dtypes says") {
  CHECK(value8(DType::f8_e4m3, 0x38) == 1);
  CHECK(value8(DType::f8_e4m3, 0x7e) == 448);
  CHECK(value8(DType::f8_e4m3, 0x01) == std::ldexp(1.0, -9));
  CHECK(std::isnan(value8(DType::f8_e4m3, 0xff)));
  CHECK(value8(DType::f8_e5m2, 0x3c) == 1);
  CHECK(value8(DType::f8_e5m2, 0x7b) == 57344);
  CHECK(value8(DType::f8_e5m2, 0xfc) == -INFINITY);
  CHECK(std::isnan(value8(DType::f8_e5m2, 0x7d)));
  CHECK(value8(DType::f8_e4m3fnuz, 0x40) == 1);
  CHECK(value8(DType::f8_e4m3fnuz, 0x7f) == 240);
  CHECK(std::isnan(value8(DType::f8_e4m3fnuz, 0x80)));
  CHECK(value8(DType::f8_e5m2fnuz, 0x40) == 1);
  CHECK(value8(DType::f8_e5m2fnuz, 0x7f) == 57344);
  CHECK(std::isnan(value8(DType::f8_e5m2fnuz, 0x80)));
  CHECK(value8(DType::f8_e8m0, 127) == 1);
  CHECK(value8(DType::f8_e8m0, 0) == std::ldexp(1.0, -127));
  CHECK(std::isnan(value8(DType::f8_e8m0, 255)));
}

TEST_CASE("only types whose elements have fractions are floats") {
  for (DType type : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::f8_e4m3, DType::f8_e8m0})
    CHECK(is_float(type));
  for (DType type : {DType::i8, DType::boolean, DType::c64, DType::q4_0, DType::f4, DType::npy_other})
    CHECK_FALSE(is_float(type));
}

}  // namespace weft
