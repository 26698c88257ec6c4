// GGUF 2 and 3, little-endian: magic, version, counts, metadata (key, type, value), tensor infos (name, dimensions,
// type, offset), padding, tensor data. Offsets count from the aligned start of the data. gguf-py reads files that this
// reader does not: big-endian ones, and those whose tensors overlap or leave gaps. These are Errc::unsupported.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "base/limits.h"
#include "base/text.h"
#include "format/builtin.h"
#include "format/cursor.h"
#include "format/layout.h"
#include "format/parse_errors.h"

namespace weft {
namespace {

constexpr std::string_view kGgufMagic = "GGUF";
constexpr std::uint32_t kDefaultAlignment = 32;
constexpr std::uint64_t kKeyBytesMin = 8 + 4 + 1;         // key length, value type, smallest value
constexpr std::uint64_t kTensorBytesMin = 8 + 4 + 4 + 8;  // name length, dimension count, type, offset

// ggml numbers its types from 0 on. A newer ggml may have types up to this number.
constexpr std::uint32_t kElementTypesMax = 256;

// By ggml's number of the type; nothing for a type that ggml removed.
constexpr std::array<std::optional<DType>, 42> kGgufTypes = {
    DType::f32,   DType::f16,   DType::q4_0,    DType::q4_1,   std::nullopt,   std::nullopt, DType::q5_0,
    DType::q5_1,  DType::q8_0,  DType::q8_1,    DType::q2_k,   DType::q3_k,    DType::q4_k,  DType::q5_k,
    DType::q6_k,  DType::q8_k,  DType::iq2_xxs, DType::iq2_xs, DType::iq3_xxs, DType::iq1_s, DType::iq4_nl,
    DType::iq3_s, DType::iq2_s, DType::iq4_xs,  DType::i8,     DType::i16,     DType::i32,   DType::i64,
    DType::f64,   DType::iq1_m, DType::bf16,    std::nullopt,  std::nullopt,   std::nullopt, DType::tq1_0,
    DType::tq2_0, std::nullopt, std::nullopt,   std::nullopt,  DType::mxfp4,   DType::nvfp4, DType::q1_0,
};

// True for the magic and a version of one byte, in either byte order. The magic alone begins texts about GGUF too.
bool begins_like_gguf(std::span<const std::byte> head) {
  constexpr std::size_t kVersionBytes = 4;
  if (head.size() < kGgufMagic.size() + kVersionBytes) return false;
  if (!std::ranges::equal(head.first(kGgufMagic.size()), std::as_bytes(std::span(kGgufMagic)))) return false;
  const auto version = head.subspan(kGgufMagic.size(), kVersionBytes);
  const auto zeros = std::ranges::count(version, std::byte{0});
  return zeros == kVersionBytes - 1 && (version.front() != std::byte{0} || version.back() != std::byte{0});
}

enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };
// Bytes of a value; for a text or an array, the least possible.
constexpr std::array<std::uint64_t, 13> kValueBytes = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

class GgufReader {
 public:
  explicit GgufReader(ByteSource& source) : cursor_(source, limits::kGgufHeaderMax), file_size_(source.size()) {}

  Result<Layout> read();
  // Returns the entry that is being read, for messages: "metadata \"general.name\"".
  std::string place() const;

 private:
  enum class At { header, metadata, tensor, data };

  Status read_header();
  Status read_version();
  Status check_count(std::string_view what, std::uint64_t count, std::uint64_t bytes_min, std::uint64_t bound) const;
  Errc lacking(std::uint64_t count, std::uint64_t bytes) const;  // as HeaderCursor::lacking, of their product
  Status read_metadata();
  Status read_key();
  Status read_value(ValueType type);
  Status read_text_value();
  Result<std::string> scalar_text(ValueType type);
  Status read_alignment(ValueType type);
  Result<ValueType> read_type();
  Status skip_array(std::size_t depth);
  Status skip_text();
  Status read_tensor();
  Result<Shape> read_shape();
  Result<DType> read_element_type();

  HeaderCursor cursor_;
  std::uint64_t file_size_;
  Layout layout_;
  std::vector<RegionTensor> tensors_;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t key_count_ = 0;
  std::uint32_t alignment_ = kDefaultAlignment;
  std::vector<std::string> keys_;
  At at_ = At::header;
  std::uint64_t index_ = 0;
  std::string name_;  // of the current key or tensor, once read
};

Error invalid_gguf(std::string message) {
  return Error{Errc::invalid, std::move(message)};
}
Error unsupported(std::string message) {
  return Error{Errc::unsupported, std::move(message)};
}

std::string GgufReader::place() const {
  if (at_ == At::header) return "GGUF header: ";
  if (at_ == At::data) return {};
  std::string_view what = at_ == At::metadata ? "metadata" : "tensor";
  return name_.empty() ? fmt::format("{} {}: ", what, index_) : fmt::format("{} \"{}\": ", what, printable(name_));
}

Result<Layout> GgufReader::read() {
  WEFT_CHECK(read_header());
  at_ = At::metadata;
  WEFT_CHECK(read_metadata());
  at_ = At::tensor;
  for (index_ = 0; index_ < tensor_count_; ++index_) WEFT_CHECK(read_tensor());
  at_ = At::data;
  std::uint64_t begin = cursor_.position();
  begin += std::min(padding_at(begin, alignment_), file_size_ - begin);  // a file without data may end unpadded
  WEFT_TRY(layout_.tensors,
           place_tensors({begin, file_size_, alignment_, false, Errc::unsupported}, std::move(tensors_)));
  layout_.format = "gguf";
  return std::move(layout_);
}

Status GgufReader::read_header() {
  std::array<std::byte, 4> magic{};
  WEFT_CHECK(cursor_.read(magic));
  if (!std::ranges::equal(magic, std::as_bytes(std::span(kGgufMagic))))
    return invalid_gguf("expected the magic \"GGUF\", got other bytes");
  WEFT_CHECK(read_version());
  WEFT_TRY(tensor_count_, cursor_.number<std::uint64_t>());
  WEFT_TRY(key_count_, cursor_.number<std::uint64_t>());
  WEFT_CHECK(check_count("tensors", tensor_count_, kTensorBytesMin, limits::kTensorsPerFileMax));
  return check_count("metadata keys", key_count_, kKeyBytesMin, limits::kGgufKeysMax);
}

Status GgufReader::check_count(std::string_view what, std::uint64_t count, std::uint64_t bytes_min,
                               std::uint64_t bound) const {
  const std::uint64_t count_max = std::min(bound, cursor_.remaining() / bytes_min);
  if (count <= count_max) return {};
  return Error{lacking(count, bytes_min),
               fmt::format("expected at most {} {} in a file of this size, got a count of {}", count_max, what, count)};
}

Errc GgufReader::lacking(std::uint64_t count, std::uint64_t bytes) const {
  std::uint64_t all = 0;
  return __builtin_mul_overflow(count, bytes, &all) ? Errc::invalid : cursor_.lacking(all);
}

Status GgufReader::read_version() {
  WEFT_TRY(auto version, cursor_.number<std::uint32_t>());
  if (version == 2 || version == 3) return {};
  const std::uint32_t swapped = __builtin_bswap32(version);
  if (swapped == 2 || swapped == 3)
    return unsupported(fmt::format("expected a little-endian file, got a big-endian one of version {}", swapped));
  return invalid_gguf(fmt::format("expected version 2 or 3, got {}", version));
}

Status GgufReader::read_metadata() {
  for (index_ = 0; index_ < key_count_; ++index_) WEFT_CHECK(read_key());
  name_.clear();
  std::vector<std::string_view> keys(keys_.begin(), keys_.end());
  if (auto twice = find_duplicate(std::move(keys))) {
    name_ = *twice;
    return invalid_gguf("expected each key once, got it twice");
  }
  return {};
}

Status GgufReader::read_key() {
  name_.clear();
  WEFT_TRY(auto length, cursor_.number<std::uint64_t>());
  if (length == 0 || length > limits::kGgufKeyMax)
    return Error{cursor_.lacking(length),
                 fmt::format("expected a key of 1 to {} bytes, got {}", limits::kGgufKeyMax, length)};
  WEFT_TRY(name_, cursor_.text(length));
  if (!valid_utf8(name_)) return invalid_gguf("expected a key in UTF-8, got other bytes");
  keys_.push_back(name_);
  WEFT_TRY(ValueType type, read_type());
  return read_value(type);
}

Result<ValueType> GgufReader::read_type() {
  WEFT_TRY(auto type, cursor_.number<std::uint32_t>());
  if (type >= kValueBytes.size())
    return invalid_gguf(fmt::format("expected a value type from 0 to {}, got {}", kValueBytes.size() - 1, type));
  return static_cast<ValueType>(type);
}

Status GgufReader::read_value(ValueType type) {
  if (name_ == "general.alignment") return read_alignment(type);
  if (type == ValueType::array) return skip_array(1);
  if (type == ValueType::text) return read_text_value();
  WEFT_TRY(std::string text, scalar_text(type));
  keep_metadata(layout_, name_, text);
  return {};
}

Status GgufReader::read_alignment(ValueType type) {
  if (type != ValueType::u32)
    return invalid_gguf(fmt::format("expected an alignment of type u32 (4), got type {}", static_cast<unsigned>(type)));
  WEFT_TRY(alignment_, cursor_.number<std::uint32_t>());
  if (!std::has_single_bit(alignment_))
    return invalid_gguf(fmt::format("expected an alignment that is a power of two, got {}", alignment_));
  keep_metadata(layout_, name_, fmt::format("{}", alignment_));
  return {};
}

Result<std::string> GgufReader::scalar_text(ValueType type) {
  std::array<std::byte, 8> bytes{};
  WEFT_CHECK(cursor_.read(std::span(bytes).first(kValueBytes[static_cast<std::size_t>(type)])));
  auto bits = load_le<std::uint64_t>(bytes.data());
  switch (type) {
    case ValueType::i8:
      return fmt::format("{}", static_cast<std::int8_t>(bits));
    case ValueType::i16:
      return fmt::format("{}", static_cast<std::int16_t>(bits));
    case ValueType::i32:
      return fmt::format("{}", static_cast<std::int32_t>(bits));
    case ValueType::i64:
      return fmt::format("{}", static_cast<std::int64_t>(bits));
    case ValueType::f32:
      return fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case ValueType::f64:
      return fmt::format("{}", std::bit_cast<double>(bits));
    case ValueType::boolean:
      return std::string(bits != 0 ? "true" : "false");
    default:
      return fmt::format("{}", bits);
  }
}

Status GgufReader::read_text_value() {
  WEFT_TRY(auto length, cursor_.number<std::uint64_t>());
  if (length > limits::kMetadataTextMax) return cursor_.skip(length);
  WEFT_TRY(std::string text, cursor_.text(length));
  keep_metadata(layout_, name_, text);
  return {};
}

Status GgufReader::skip_text() {
  WEFT_TRY(auto length, cursor_.number<std::uint64_t>());
  return cursor_.skip(length);
}

Status GgufReader::skip_array(std::size_t depth) {
  if (depth > limits::kGgufArrayDepthMax)
    return invalid_gguf(fmt::format("expected arrays nested at most {} deep, got more", limits::kGgufArrayDepthMax));
  WEFT_TRY(ValueType type, read_type());
  WEFT_TRY(auto count, cursor_.number<std::uint64_t>());
  std::uint64_t bytes = kValueBytes[static_cast<std::size_t>(type)];
  if (count > cursor_.remaining() / bytes)
    return Error{lacking(count, bytes),
                 fmt::format("expected an array of at most {} values in the {} bytes left, got a count of {}",
                             cursor_.remaining() / bytes, cursor_.remaining(), count)};
  if (type != ValueType::text && type != ValueType::array) return cursor_.skip(count * bytes);
  for (std::uint64_t i = 0; i < count; ++i) WEFT_CHECK(type == ValueType::text ? skip_text() : skip_array(depth + 1));
  return {};
}

Status GgufReader::read_tensor() {
  name_.clear();
  RegionTensor one;
  FoundTensor& tensor = one.tensor;
  WEFT_TRY(auto length, cursor_.number<std::uint64_t>());
  if (length > limits::kTensorNameMax)
    return Error{cursor_.lacking(length),
                 fmt::format("expected a name of at most {} bytes, got {}", limits::kTensorNameMax, length)};
  WEFT_TRY(name_, cursor_.text(length));
  WEFT_CHECK(check_tensor_name(name_, tensors_.size()));
  WEFT_TRY(tensor.shape, read_shape());
  WEFT_TRY(tensor.dtype, read_element_type());
  const DTypeInfo& info = *dtype_info(tensor.dtype);
  std::uint64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % info.block_elements != 0)
    return invalid_gguf(fmt::format("expected rows of whole {} blocks of {} elements, got shape {}", info.name,
                                    info.block_elements, shape_text(tensor.shape)));
  WEFT_TRY(one.length, tensor_bytes(tensor.dtype, tensor.shape));
  WEFT_TRY(one.offset, cursor_.number<std::uint64_t>());
  if (one.offset % alignment_ != 0)
    return unsupported(
        fmt::format("expected an offset that is a multiple of the alignment {}, got {}", alignment_, one.offset));
  tensor.name = name_;
  tensors_.push_back(std::move(one));
  return {};
}

// Reads a shape. The file has the fastest dimension first.
Result<Shape> GgufReader::read_shape() {
  WEFT_TRY(auto count, cursor_.number<std::uint32_t>());
  if (count > limits::kGgufDimensionsMax)
    return Error{lacking(count, sizeof(std::uint64_t)),
                 fmt::format("expected at most {} dimensions, got {}", limits::kGgufDimensionsMax, count)};
  Shape shape(count);
  for (std::uint32_t i = count; i-- > 0;) {
    WEFT_TRY(shape[i], cursor_.number<std::uint64_t>());
  }
  return shape;
}

Result<DType> GgufReader::read_element_type() {
  WEFT_TRY(auto type, cursor_.number<std::uint32_t>());
  if (type >= kGgufTypes.size())
    return Error{type < kElementTypesMax ? Errc::unsupported : Errc::invalid,
                 fmt::format("expected an element type from 0 to {}, got {}", kGgufTypes.size() - 1, type)};
  if (!kGgufTypes[type])
    return unsupported(fmt::format("expected an element type that ggml has, got {}, which it removed", type));
  return *kGgufTypes[type];
}

class Gguf final : public Format {
 public:
  std::string_view name() const override { return "gguf"; }

  bool claims(std::string_view file_name, std::span<const std::byte> head) const override {
    return file_name.ends_with(".gguf") || begins_like_gguf(head);
  }

  Result<Layout> parse(FormatInput& files) const override {
    GgufReader reader(files.main());
    auto layout = reader.read();
    if (!layout.ok() && is_malformed(layout.error()))
      return Error{layout.error().code, reader.place() + layout.error().message};
    return layout;
  }
};

}  // namespace

const Format& gguf_format() {
  static const Gguf format;
  return format;
}

}  // namespace weft
