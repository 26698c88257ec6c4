#include "format/hdf5/types.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/limits.h"
#include "format/hdf5/file.h"

namespace weft {
namespace {

// Numbers of the specification.
enum class Hdf5Class : std::uint8_t {
  integer,
  real,
  time,
  text,
  bits,
  opaque,
  compound,
  reference,
  enumeration,
  variable,
  array,
  complex,
};

std::string_view class_reason(Hdf5Class kind) {
  constexpr std::array<std::string_view, 12> kReasons = {
      "an integer type that weft lacks",
      "a floating-point type that weft lacks",
      "times",
      "text",
      "bit fields",
      "opaque bytes",
      "a compound type",
      "references",
      "an enumeration of a type that weft lacks",
      "elements of variable length",
      "arrays as elements",
      "a complex type that weft lacks",
  };
  const auto number = static_cast<std::size_t>(kind);
  return number < kReasons.size() ? kReasons[number] : "a type that weft does not know";
}

// The first eight bytes of a datatype.
struct TypeHead {
  std::uint64_t version = 0;
  Hdf5Class kind{};
  std::uint64_t bits = 0;  // a meaning for each class
  std::uint64_t bytes = 0;
};

TypeHead read_type_head(Hdf5Fields& fields) {
  TypeHead head;
  const std::uint64_t first = fields.number(1);
  head.version = first >> 4U;
  head.kind = static_cast<Hdf5Class>(first & 15U);
  head.bits = fields.number(3);
  head.bytes = fields.number(4);
  return head;
}

std::optional<DType> integer_type(const TypeHead& head, Hdf5Fields& fields) {
  const std::uint64_t offset = fields.number(2), precision = fields.number(2);
  if (offset != 0 || precision != 8 * head.bytes) return std::nullopt;
  const bool is_signed = (head.bits & 8U) != 0;
  switch (head.bytes) {
    case 1:
      return is_signed ? DType::i8 : DType::u8;
    case 2:
      return is_signed ? DType::i16 : DType::u16;
    case 4:
      return is_signed ? DType::i32 : DType::u32;
    case 8:
      return is_signed ? DType::i64 : DType::u64;
    default:
      return std::nullopt;
  }
}

// A floating-point type: the sign, then the exponent, then the mantissa with an implied first bit.
struct RealType {
  DType type;
  std::uint64_t exponent_bits, mantissa_bits, bias;
};

constexpr auto kRealTypes = std::to_array<RealType>({
    {DType::f16, 5, 10, 15},
    {DType::bf16, 8, 7, 127},
    {DType::f32, 8, 23, 127},
    {DType::f64, 11, 52, 1023},
    {DType::f8_e4m3, 4, 3, 7},
    {DType::f8_e5m2, 5, 2, 15},
});

std::optional<DType> real_type(const TypeHead& head, Hdf5Fields& fields) {
  constexpr std::uint64_t kOtherByteOrder = 0x40, kMantissa = 0x30, kMantissaImplied = 0x20;
  const std::uint64_t offset = fields.number(2), precision = fields.number(2), exponent_at = fields.number(1);
  const std::uint64_t exponent_bits = fields.number(1), mantissa_at = fields.number(1),
                      mantissa_bits = fields.number(1);
  const std::uint64_t bias = fields.number(4), sign_at = head.bits >> 8U;
  if (offset != 0 || precision != 8 * head.bytes || (head.bits & kOtherByteOrder) != 0 ||
      (head.bits & kMantissa) != kMantissaImplied || mantissa_at != 0 || exponent_at != mantissa_bits ||
      sign_at + 1 != precision || precision != 1 + exponent_bits + mantissa_bits)
    return std::nullopt;
  const auto found = std::ranges::find_if(kRealTypes, [&](const RealType& one) {
    return one.exponent_bits == exponent_bits && one.mantissa_bits == mantissa_bits && one.bias == bias;
  });
  return found == kRealTypes.end() ? std::nullopt : std::optional(found->type);
}

// Reads a datatype without inner datatypes.
Hdf5Type scalar_type(Hdf5Fields& fields) {
  const TypeHead head = read_type_head(fields);
  Hdf5Type type;
  type.bytes = head.bytes;
  type.big_endian = head.bytes > 1 && (head.bits & 1U) != 0;
  if (head.kind == Hdf5Class::integer) type.dtype = integer_type(head, fields);
  if (head.kind == Hdf5Class::real) type.dtype = real_type(head, fields);
  type.why = class_reason(head.kind);
  return type;
}

// Names are padded to eight bytes up to version 2.
std::string_view type_member_name(const TypeHead& head, Hdf5Fields& fields) {
  constexpr std::uint64_t kNamePad = 8;
  Hdf5Fields rest = fields.rest();
  const std::string_view all = rest.text(rest.remaining());
  const std::string_view name = all.substr(0, all.find('\0'));
  const std::uint64_t taken = name.size() + 1;
  fields.skip(head.version < 3 ? (taken + kNamePad - 1) / kNamePad * kNamePad : taken);
  return name;
}

// h5py writes bool as an enumeration of 8 bits: FALSE is 0 and TRUE is 1. Others are shown as their numbers.
Hdf5Type enumeration_type(const TypeHead& head, Hdf5Fields& fields) {
  Hdf5Type type = scalar_type(fields);
  const bool one_byte = type.dtype == DType::i8 || type.dtype == DType::u8;
  type.why = class_reason(Hdf5Class::enumeration);
  if (type.bytes != head.bytes) type.dtype.reset();
  if (!one_byte || (head.bits & 0xffffU) != 2) return type;
  const std::string_view first = type_member_name(head, fields), second = type_member_name(head, fields);
  const std::uint64_t first_value = fields.number(1), second_value = fields.number(1);
  if (!fields.ended() && first == "FALSE" && second == "TRUE" && first_value == 0 && second_value == 1)
    type.dtype = DType::boolean;
  return type;
}

std::optional<DType> complex_of(const Hdf5Type& part) {
  if (part.dtype == DType::f32) return DType::c64;
  return part.dtype == DType::f64 ? std::optional(DType::c128) : std::nullopt;
}

// Returns the type of a member of a compound that begins at `offset`.
Hdf5Type compound_member(const TypeHead& head, Hdf5Fields& fields, std::string_view name, std::uint64_t offset) {
  constexpr std::uint64_t kFirstVersionDimensions = 28;
  const std::string_view got_name = type_member_name(head, fields);
  const std::uint64_t got_offset = fields.number(head.version < 3 ? 4 : hdf5_width(head.bytes));
  if (head.version == 1) fields.skip(kFirstVersionDimensions);
  Hdf5Type type = scalar_type(fields);
  if (got_name != name || got_offset != offset) type.dtype.reset();
  return type;
}

// h5py writes complex numbers as a compound of r and i. Other compounds are not shown.
Hdf5Type compound_type(const TypeHead& head, Hdf5Fields& fields) {
  Hdf5Type type;
  type.bytes = head.bytes;
  type.why = class_reason(head.kind);
  if ((head.bits & 0xffffU) != 2 || (head.bytes != 8 && head.bytes != 16)) return type;
  const Hdf5Type real = compound_member(head, fields, "r", 0);
  const Hdf5Type imaginary = compound_member(head, fields, "i", head.bytes / 2);
  if (fields.ended() || real.dtype != imaginary.dtype || real.big_endian != imaginary.big_endian ||
      2 * real.bytes != head.bytes)
    return type;
  type.dtype = complex_of(real);
  type.big_endian = real.big_endian;
  return type;
}

Hdf5Type complex_type(const TypeHead& head, Hdf5Fields& fields) {
  const Hdf5Type part = scalar_type(fields);
  Hdf5Type type{2 * part.bytes == head.bytes ? complex_of(part) : std::nullopt, head.bytes, part.big_endian, false, {}};
  type.why = class_reason(head.kind);
  return type;
}

}  // namespace

Result<Hdf5Type> read_hdf5_type(Hdf5Fields message) {
  const Hdf5Fields whole = message;
  const TypeHead head = read_type_head(message);
  if (message.ended() || head.bytes == 0 || head.version == 0) return hdf5_error("its datatype is broken");
  const auto read = [&] {
    if (head.kind == Hdf5Class::enumeration) return enumeration_type(head, message);
    if (head.kind == Hdf5Class::compound) return compound_type(head, message);
    if (head.kind == Hdf5Class::complex) return complex_type(head, message);
    message = whole;
    return scalar_type(message);
  };
  Hdf5Type type = read();
  if (message.ended()) return hdf5_error("its datatype is shorter than its fields");
  type.bytes = head.bytes;
  type.opaque = head.kind == Hdf5Class::opaque;
  return type;
}

Result<std::optional<Shape>> read_hdf5_shape(Hdf5Fields message) {
  constexpr std::uint64_t kNull = 2;
  const std::uint64_t version = message.number(1), rank = message.number(1);
  message.skip(1);
  const std::uint64_t kind = message.number(1);
  if (version != 1 && version != 2)
    return hdf5_error(fmt::format("its dataspace: expected version 1 or 2, got {}", version));
  if (version == 2 && kind == kNull) return std::optional<Shape>();
  if (rank > limits::kDimensionsMax)
    return hdf5_error(
        fmt::format("its dataspace: expected at most {} dimensions, got {}", limits::kDimensionsMax, rank));
  message.skip(version == 1 ? 4 : 0);
  Shape shape;
  for (std::uint64_t i = 0; i < rank; ++i) shape.push_back(message.length());
  if (message.ended()) return hdf5_error("its dataspace is shorter than its fields");
  return std::optional(std::move(shape));
}

std::optional<DType> named_hdf5_type(std::string_view name, std::uint64_t bytes) {
  constexpr auto kNamed = std::to_array<std::pair<std::string_view, DType>>({
      {"bfloat16", DType::bf16},
      {"float8_e4m3fn", DType::f8_e4m3},
      {"float8_e5m2", DType::f8_e5m2},
  });
  for (const auto& [known, type] : kNamed)
    if (name == known && dtype_info(type)->block_bytes == bytes) return type;
  return std::nullopt;
}

}  // namespace weft
