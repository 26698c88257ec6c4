#include "format/tf/bundle_entry.h"

#include <array>
#include <bit>

#include "base/limits.h"

namespace weft {
namespace {

// Field numbers, by message.
namespace bundle_entry {
constexpr std::uint32_t kType = 1, kShape = 2, kShard = 3, kOffset = 4, kLength = 5, kSlices = 7;
}
namespace bundle_shape {
constexpr std::uint32_t kDimensions = 2, kSize = 1;
}
namespace bundle_slice {
constexpr std::uint32_t kExtents = 1, kStart = 1, kLength = 2;
}

// By the numbers of DataType in types.proto. Numbers of 2 and 4 bits have a byte for each element, in no type of weft.
constexpr std::array<BundleType, 33> kBundleTypes = {{
    {"INVALID", {}},
    {"FLOAT", DType::f32},
    {"DOUBLE", DType::f64},
    {"INT32", DType::i32},
    {"UINT8", DType::u8},
    {"INT16", DType::i16},
    {"INT8", DType::i8},
    {"STRING", {}},
    {"COMPLEX64", DType::c64},
    {"INT64", DType::i64},
    {"BOOL", DType::boolean},
    {"QINT8", DType::i8},
    {"QUINT8", DType::u8},
    {"QINT32", DType::i32},
    {"BFLOAT16", DType::bf16},
    {"QINT16", DType::i16},
    {"QUINT16", DType::u16},
    {"UINT16", DType::u16},
    {"COMPLEX128", DType::c128},
    {"HALF", DType::f16},
    {"RESOURCE", {}},
    {"VARIANT", {}},
    {"UINT32", DType::u32},
    {"UINT64", DType::u64},
    {"FLOAT8_E5M2", DType::f8_e5m2},
    {"FLOAT8_E4M3FN", DType::f8_e4m3},
    {"FLOAT8_E4M3FNUZ", DType::f8_e4m3fnuz},
    {"FLOAT8_E4M3B11FNUZ", {}},
    {"FLOAT8_E5M2FNUZ", DType::f8_e5m2fnuz},
    {"INT4", {}},
    {"UINT4", {}},
    {"INT2", {}},
    {"UINT2", {}},
}};

Status read_shape(ProtobufReader& file, Range message, Shape& shape) {
  return file.each_field(message, [&](const ProtobufField& field) -> Status {
    if (!field.is_bytes(bundle_shape::kDimensions) || shape.size() > limits::kDimensionsMax) return {};
    std::uint64_t& size = shape.emplace_back(0);
    return file.each_field(field.bytes, [&](const ProtobufField& inner) -> Status {
      if (inner.is_varint(bundle_shape::kSize)) size = inner.value;
      return {};
    });
  });
}

Result<BundleSlice> read_slice(ProtobufReader& file, Range message) {
  BundleSlice slice;
  WEFT_CHECK(file.each_field(message, [&](const ProtobufField& field) -> Status {
    if (!field.is_bytes(bundle_slice::kExtents) || slice.begin.size() > limits::kDimensionsMax) return {};
    std::uint64_t& begin = slice.begin.emplace_back(0);
    std::uint64_t& length = slice.length.emplace_back(BundleSlice::kWhole);
    return file.each_field(field.bytes, [&](const ProtobufField& inner) -> Status {
      if (inner.is_varint(bundle_slice::kStart)) begin = inner.value;
      if (inner.is_varint(bundle_slice::kLength)) length = inner.value;
      return {};
    });
  }));
  return slice;
}

// The encodings of OrderedCode keep the order of what they encode.

// Adds a byte with the count of the number's bytes, and these bytes, the highest first.
void add_ordered_number(std::string& key, std::uint64_t number) {
  const auto bytes = static_cast<unsigned>(std::bit_width(number) + 7) / 8;
  key += static_cast<char>(bytes);
  for (unsigned i = bytes; i-- > 0;) key += static_cast<char>(number >> (8 * i));
}

// Adds the text. A further byte follows each byte 0 or 255, and the bytes 0 and 1 end the text.
void add_ordered_text(std::string& key, std::string_view text) {
  for (const char byte : text) {
    key += byte;
    if (byte == '\0') key += '\xff';
    if (byte == '\xff') key += '\0';
  }
  key += std::string_view("\0\1", 2);
}

// Adds the number in 1 to 10 bytes, each with room for 7 bits. The number begins with as many bits as it has bytes: 1
// if it is positive, 0 if it is negative. A bit of the other value follows them.
void add_ordered_signed(std::string& key, std::uint64_t number) {
  const bool negative = number >> 63U != 0;
  const auto length = static_cast<unsigned>(std::bit_width(negative ? ~number : number)) / 7 + 1;  // 1 to 10
  std::array<std::uint8_t, 10> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t shift = 8 * (bytes.size() - 1 - i);
    bytes.at(i) = static_cast<std::uint8_t>(shift < 64 ? number >> shift : std::uint64_t{negative ? 0xffU : 0U});
  }
  const std::uint32_t leading = (0xffff0000U >> length) & 0xffffU;  // `length` bits of 16
  const std::size_t first = bytes.size() - length;
  bytes.at(first) ^= static_cast<std::uint8_t>(leading >> 8U);
  if (length > 1) bytes.at(first + 1) ^= static_cast<std::uint8_t>(leading);
  for (std::size_t i = first; i < bytes.size(); ++i) key += static_cast<char>(bytes.at(i));
}

}  // namespace

Result<BundleEntry> read_bundle_entry(ProtobufReader& file, Range message) {
  BundleEntry entry;
  WEFT_CHECK(file.each_field(message, [&](const ProtobufField& field) -> Status {
    if (field.is_varint(bundle_entry::kType)) entry.type = field.value;
    if (field.is_varint(bundle_entry::kShard)) entry.shard = field.value;
    if (field.is_varint(bundle_entry::kOffset)) entry.offset = field.value;
    if (field.is_varint(bundle_entry::kLength)) entry.length = field.value;
    if (field.is_bytes(bundle_entry::kSlices)) ++entry.slices;
    return field.is_bytes(bundle_entry::kShape) ? read_shape(file, field.bytes, entry.shape) : Status{};
  }));
  return entry;
}

Status each_bundle_slice(ProtobufReader& file, Range message, const std::function<Status(const BundleSlice&)>& visit) {
  return file.each_field(message, [&](const ProtobufField& field) -> Status {
    if (!field.is_bytes(bundle_entry::kSlices)) return {};
    WEFT_TRY(const BundleSlice slice, read_slice(file, field.bytes));
    return visit(slice);
  });
}

std::string slice_key(std::string_view tensor, const BundleSlice& slice) {
  std::string key;
  add_ordered_number(key, 0);
  add_ordered_text(key, tensor);
  add_ordered_number(key, slice.begin.size());
  for (std::size_t i = 0; i < slice.begin.size(); ++i) {
    add_ordered_signed(key, slice.begin[i]);
    add_ordered_signed(key, slice.length[i]);
  }
  return key;
}

std::optional<BundleType> bundle_type(std::uint64_t number) {
  if (number >= kBundleTypes.size()) return std::nullopt;
  return kBundleTypes[number];
}

}  // namespace weft
