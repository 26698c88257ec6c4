// Checkpoints of Flax: a map of MessagePack, whose arrays are extensions of type 1 with a shape, the name of a type of
// numpy and the bytes. Specification: https://github.com/msgpack/msgpack/blob/master/spec.md; source:
// flax/serialization.py. No file is refused: a file of this name may be another program's.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "format/builtin.h"
#include "format/cursor.h"
#include "format/parse_errors.h"
#include "format/tensor_list.h"

namespace weft {
namespace {

// The start of a value. Its bytes or its items follow.
struct MsgpackHead {
  enum class Kind { number, text, bytes, array, map, extension, other };
  Kind kind = Kind::other;
  std::uint64_t value = 0;  // of a number; the count of items or pairs; or the length in bytes
  std::uint8_t type = 0;    // of an extension
};
using MsgpackKind = MsgpackHead::Kind;

constexpr std::uint8_t kFlaxArray = 1, kFlaxScalar = 3;  // types of extensions; both have the same bytes

std::optional<DType> flax_type(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, DType>, 19> kTypes = {{{"float32", DType::f32},
                                                                          {"bfloat16", DType::bf16},
                                                                          {"float16", DType::f16},
                                                                          {"float64", DType::f64},
                                                                          {"bool", DType::boolean},
                                                                          {"int8", DType::i8},
                                                                          {"int16", DType::i16},
                                                                          {"int32", DType::i32},
                                                                          {"int64", DType::i64},
                                                                          {"uint8", DType::u8},
                                                                          {"uint16", DType::u16},
                                                                          {"uint32", DType::u32},
                                                                          {"uint64", DType::u64},
                                                                          {"complex64", DType::c64},
                                                                          {"complex128", DType::c128},
                                                                          {"float8_e4m3fn", DType::f8_e4m3},
                                                                          {"float8_e5m2", DType::f8_e5m2},
                                                                          {"float8_e4m3fnuz", DType::f8_e4m3fnuz},
                                                                          {"float8_e5m2fnuz", DType::f8_e5m2fnuz}}};
  for (const auto& [known, type] : kTypes)
    if (known == name) return type;
  return std::nullopt;
}

Error no_flax(std::string_view what, std::uint64_t at) {
  return Error{Errc::unsupported, fmt::format("msgpack: expected {} at byte {}, got other bytes", what, at)};
}

// Reads one file once.
class Flax {
 public:
  explicit Flax(ByteSource& file) : cursor_(file, file.size()), tensors_(layout_) {}

  Result<Layout> read();

 private:
  Result<MsgpackHead> next();
  // Reads a big-endian number of 1, 2, 4 or 8 bytes.
  Result<std::uint64_t> number(unsigned bytes);
  Result<MsgpackHead> sized(MsgpackKind kind, unsigned bytes);
  Result<MsgpackHead> extension(std::uint64_t length);
  Result<std::string> text(std::uint64_t length, std::uint64_t most);
  Status walk(std::size_t depth);
  Status walk_map(std::uint64_t pairs, std::size_t depth);
  Status below(std::string_view key, std::size_t depth);
  Result<std::string> key();
  Status add(std::uint64_t length);
  // Returns the array in an extension that ends at `end`, without its name. `bytes`: those of its elements.
  Result<FoundTensor> array_before(std::uint64_t end, std::uint64_t& bytes);

  HeaderCursor cursor_;
  Layout layout_;
  TensorList tensors_;
  std::string name_;  // of the value that is read
  std::uint64_t values_ = 0;
};

Result<Layout> Flax::read() {
  WEFT_CHECK(walk(0));
  if (cursor_.remaining() > 0) return no_flax("the end of the file", cursor_.position());
  if (layout_.tensors.empty() && layout_.hidden.empty()) return Layout{};
  layout_.format = "flax";
  tensors_.finish();
  return std::move(layout_);
}

Result<std::uint64_t> Flax::number(unsigned bytes) {
  std::array<std::byte, 8> field{};
  WEFT_CHECK(cursor_.read(std::span(field).first(bytes)));
  std::uint64_t value = 0;
  for (const std::byte one : std::span(field).first(bytes)) value = value << 8U | std::to_integer<std::uint64_t>(one);
  return value;
}

Result<MsgpackHead> Flax::sized(MsgpackKind kind, unsigned bytes) {
  WEFT_TRY(const std::uint64_t value, number(bytes));
  if (kind == MsgpackKind::extension) return extension(value);
  return MsgpackHead{kind, value};
}

Result<MsgpackHead> Flax::extension(std::uint64_t length) {
  WEFT_TRY(const auto type, cursor_.number<std::uint8_t>());
  return MsgpackHead{MsgpackKind::extension, length, type};
}

// The first byte of a value is its type, and of short values their length too.
Result<MsgpackHead> Flax::next() {
  if (++values_ > limits::kMsgpackValuesMax)
    return Error{Errc::unsupported,
                 fmt::format("msgpack: expected at most {} values, got more", limits::kMsgpackValuesMax)};
  const std::uint64_t at = cursor_.position();
  WEFT_TRY(const auto first, cursor_.number<std::uint8_t>());
  if (first < 0x80) return MsgpackHead{MsgpackKind::number, first};
  if (first < 0x90) return MsgpackHead{MsgpackKind::map, first & 0x0fU};
  if (first < 0xa0) return MsgpackHead{MsgpackKind::array, first & 0x0fU};
  if (first < 0xc0) return MsgpackHead{MsgpackKind::text, first & 0x1fU};
  if (first >= 0xe0) return MsgpackHead{};  // a negative number
  if (first == 0xc0 || first == 0xc2 || first == 0xc3) return MsgpackHead{};
  if (first >= 0xc4 && first <= 0xc6) return sized(MsgpackKind::bytes, 1U << (first - 0xc4U));
  if (first >= 0xc7 && first <= 0xc9) return sized(MsgpackKind::extension, 1U << (first - 0xc7U));
  if (first == 0xca || first == 0xcb) return sized(MsgpackKind::other, first == 0xca ? 4 : 8);
  if (first >= 0xcc && first <= 0xcf) return sized(MsgpackKind::number, 1U << (first - 0xccU));
  if (first >= 0xd0 && first <= 0xd3) return sized(MsgpackKind::other, 1U << (first - 0xd0U));
  if (first >= 0xd4 && first <= 0xd8) return extension(1U << (first - 0xd4U));
  if (first >= 0xd9 && first <= 0xdb) return sized(MsgpackKind::text, 1U << (first - 0xd9U));
  if (first == 0xdc || first == 0xdd) return sized(MsgpackKind::array, first == 0xdc ? 2 : 4);
  if (first == 0xde || first == 0xdf) return sized(MsgpackKind::map, first == 0xde ? 2 : 4);
  return no_flax("a value", at);
}

// Returns the first `most` bytes of a text, and skips the rest.
Result<std::string> Flax::text(std::uint64_t length, std::uint64_t most) {
  WEFT_TRY(std::string out, cursor_.text(std::min(length, most)));
  WEFT_CHECK(cursor_.skip(length - out.size()));
  return out;
}

Status Flax::walk(std::size_t depth) {
  if (depth > limits::kMsgpackDepthMax)
    return Error{Errc::unsupported,
                 fmt::format("msgpack: expected values nested at most {} deep, got more", limits::kMsgpackDepthMax)};
  WEFT_TRY(const MsgpackHead head, next());
  switch (head.kind) {
    case MsgpackKind::map:
      return walk_map(head.value, depth);
    case MsgpackKind::array:
      for (std::uint64_t i = 0; i < head.value; ++i) WEFT_CHECK(below(std::to_string(i), depth));
      return {};
    case MsgpackKind::extension:
      if (head.type == kFlaxArray || head.type == kFlaxScalar) return add(head.value);
      return cursor_.skip(head.value);
    case MsgpackKind::text:
    case MsgpackKind::bytes:
      return cursor_.skip(head.value);
    default:
      return {};
  }
}

Status Flax::walk_map(std::uint64_t pairs, std::size_t depth) {
  for (std::uint64_t i = 0; i < pairs; ++i) {
    WEFT_TRY(const std::string name, key());
    WEFT_CHECK(below(name, depth));
  }
  return {};
}

// Reads a value whose name is the key below the name so far. No tensor has a name as long as the bound, so the end of a
// longer name makes no difference.
Status Flax::below(std::string_view key, std::size_t depth) {
  const std::size_t before = name_.size();
  if (before <= limits::kTensorNameMax) name_ += before > 0 ? fmt::format(".{}", key) : std::string(key);
  Status done = walk(depth + 1);
  name_.resize(before);
  return done;
}

Result<std::string> Flax::key() {
  const std::uint64_t at = cursor_.position();
  WEFT_TRY(const MsgpackHead head, next());
  if (head.kind == MsgpackKind::text) return text(head.value, limits::kTensorNameMax + 1);
  if (head.kind == MsgpackKind::number) return std::to_string(head.value);
  return no_flax("a key", at);
}

Status Flax::add(std::uint64_t length) {
  if (length > cursor_.remaining()) return no_flax(fmt::format("{} bytes of an array", length), cursor_.position());
  const std::uint64_t end = cursor_.position() + length;
  std::uint64_t bytes = length;
  auto array = array_before(end, bytes);
  if (!array.ok() && !is_malformed(array.error())) return std::move(array).error();
  WEFT_CHECK(cursor_.move_to(end));
  return tensors_.add(std::move(array), {name_.empty() ? "array" : name_, bytes, "", {}, {}});
}

// (shape, type, bytes). The walk goes on behind the extension, so it must not lead far beyond its end.
Result<FoundTensor> Flax::array_before(std::uint64_t end, std::uint64_t& bytes) {
  const Error unknown{Errc::unsupported, "an array that is not described as Flax does"};
  FoundTensor tensor;
  WEFT_TRY(const MsgpackHead parts, next());
  WEFT_TRY(const MsgpackHead shape, next());
  if (parts.kind != MsgpackKind::array || parts.value != 3 || shape.kind != MsgpackKind::array ||
      shape.value > limits::kDimensionsMax)
    return unknown;
  for (std::uint64_t i = 0; i < shape.value; ++i) {
    WEFT_TRY(const MsgpackHead dimension, next());
    if (dimension.kind != MsgpackKind::number) return unknown;
    tensor.shape.push_back(dimension.value);
  }
  WEFT_TRY(const MsgpackHead type, next());
  if (type.kind != MsgpackKind::text || cursor_.position() > end || type.value > end - cursor_.position())
    return unknown;
  WEFT_TRY(const std::string name, text(type.value, limits::kNameMax));
  WEFT_TRY(const MsgpackHead data, next());
  if (data.kind != MsgpackKind::bytes || cursor_.position() > end || data.value > end - cursor_.position())
    return unknown;
  bytes = data.value;
  const auto dtype = flax_type(name);
  if (!dtype) return Error{Errc::unsupported, fmt::format("a type that weft lacks, {}", name)};
  tensor.dtype = *dtype;
  const auto needed = tensor_bytes(*dtype, tensor.shape);
  if (!needed.ok() || *needed != bytes)
    return Error{Errc::unsupported,
                 fmt::format("expected other bytes for its shape {}, got {}", shape_text(tensor.shape), bytes)};
  if (bytes > 0) tensor.parts.push_back({0, cursor_.position(), bytes});
  return tensor;
}

class FlaxFormat final : public Format {
 public:
  std::string_view name() const override { return "flax"; }

  bool claims(std::string_view file_name, std::span<const std::byte> /*head*/) const override {
    return file_name.ends_with(".msgpack");
  }

  Result<Layout> parse(FormatInput& files) const override {
    auto layout = Flax(files.main()).read();
    if (!layout.ok() && is_malformed(layout.error())) return Error{Errc::unsupported, layout.error().message};
    return layout;
  }
};

}  // namespace

const Format& flax_format() {
  static const FlaxFormat format;
  return format;
}

}  // namespace weft
