#include "format/protobuf.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace weft {
namespace {

constexpr std::uint64_t kVarintBytesMax = 10;
constexpr std::uint64_t kFieldNumberMax = (1U << 29U) - 1;
constexpr unsigned kGroupBegin = 3, kGroupEnd = 4;

template <class... Args>
Error no_message(fmt::format_string<Args...> format, Args&&... args) {
  return Error{Errc::invalid, "protobuf: " + fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace

std::optional<Varint> first_varint(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size() && i < kVarintBytesMax; ++i) {
    const auto byte = std::to_integer<std::uint64_t>(bytes[i]);
    value |= (byte & 0x7fU) << (7 * i);
    if (byte < 0x80U) return Varint{value, i + 1};
  }
  return std::nullopt;
}

Status ProtobufReader::each_field(Range message, const Visit& visit) {
  if (depth_ == limits::kProtobufDepthMax)
    return Error{Errc::unsupported,
                 fmt::format("protobuf: expected messages nested at most {} deep, got more", depth_)};
  ++depth_;
  Status done = visit_all(message.offset, message.offset + message.length, visit);
  --depth_;
  return done;
}

Status ProtobufReader::visit_all(std::uint64_t at, std::uint64_t end, const Visit& visit) {
  while (at < end) {
    if (++visited_ > limits::kProtobufFieldsMax)
      return Error{Errc::unsupported,
                   fmt::format("protobuf: expected at most {} fields, got more", limits::kProtobufFieldsMax)};
    WEFT_CHECK(cursor_.move_to(at));
    WEFT_TRY(const ProtobufField field, next(end));
    at = field.bytes.offset + field.bytes.length;
    WEFT_CHECK(visit(field));
  }
  return {};
}

Result<ProtobufField> ProtobufReader::next(std::uint64_t end) {
  const std::uint64_t begin = cursor_.position();
  WEFT_TRY(const std::uint64_t key, varint(end));
  const std::uint64_t number = key >> 3U;
  const auto wire_type = static_cast<unsigned>(key & 7U);
  if (number == 0 || number > kFieldNumberMax)
    return no_message("expected a field from 1 to {} at byte {}, got {}", kFieldNumberMax, begin, number);
  if (wire_type == kGroupBegin || wire_type == kGroupEnd)
    return Error{Errc::unsupported, fmt::format("protobuf: expected no group, got one at byte {}", begin)};
  ProtobufField field{static_cast<std::uint32_t>(number), static_cast<ProtobufField::Kind>(wire_type), 0, {}};
  std::uint64_t length = 0;
  switch (field.kind) {
    case ProtobufField::Kind::varint: {
      const std::uint64_t at = cursor_.position();
      WEFT_TRY(field.value, varint(end));
      field.bytes = {at, cursor_.position() - at};
      return field;
    }
    case ProtobufField::Kind::bytes: {
      WEFT_TRY(length, varint(end));
      break;
    }
    case ProtobufField::Kind::fixed64:
      length = 8;
      break;
    case ProtobufField::Kind::fixed32:
      length = 4;
      break;
    default:
      return no_message("expected a wire type up to 5 at byte {}, got {}", begin, wire_type);
  }
  field.bytes = {cursor_.position(), length};
  if (length > end - field.bytes.offset)
    return no_message("expected at most {} bytes in field {} at byte {}, got a length of {}", end - field.bytes.offset,
                      number, begin, length);
  return field;
}

Result<std::uint64_t> ProtobufReader::varint(std::uint64_t end) {
  const std::uint64_t begin = cursor_.position();
  const std::uint64_t count = std::min(kVarintBytesMax, end - begin);
  WEFT_TRY(const std::span<const std::byte> bytes, cursor_.ahead(count));
  if (const auto number = first_varint(bytes)) {
    WEFT_CHECK(cursor_.skip(number->bytes));
    return number->value;
  }
  return no_message("expected a number of at most {} bytes at byte {}, got more or the end at byte {}", kVarintBytesMax,
                    begin, end);
}

Result<std::string> ProtobufReader::text(const ProtobufField& field, std::size_t bytes_max) {
  WEFT_CHECK(cursor_.move_to(field.bytes.offset));
  return cursor_.text(std::min<std::uint64_t>(field.bytes.length, bytes_max));
}

Status ProtobufReader::add_numbers(const ProtobufField& field, std::size_t count_max,
                                   std::vector<std::uint64_t>& numbers) {
  if (field.kind == ProtobufField::Kind::varint && numbers.size() < count_max) numbers.push_back(field.value);
  if (field.kind != ProtobufField::Kind::bytes) return {};
  const std::uint64_t end = field.bytes.offset + field.bytes.length;
  WEFT_CHECK(cursor_.move_to(field.bytes.offset));
  while (cursor_.position() < end && numbers.size() < count_max) {
    WEFT_TRY(const std::uint64_t number, varint(end));
    numbers.push_back(number);
  }
  return {};
}

}  // namespace weft
