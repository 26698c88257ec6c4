#include "format/hdf5/attributes.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace weft {
namespace {

constexpr std::string_view kGlobalHeap = "global heap";
constexpr std::uint64_t kGlobalAlignment = 8;

constexpr std::uint64_t padded_to_8(std::uint64_t bytes) {
  return (bytes + kGlobalAlignment - 1) / kGlobalAlignment * kGlobalAlignment;
}

std::string_view before_nul(std::string_view text) {
  return text.substr(0, text.find('\0'));
}

struct AttributeParts {
  std::string_view name;
  Hdf5Fields type, value;
};

// Nothing: the attribute is broken, or its type is kept somewhere else.
std::optional<AttributeParts> attribute_parts(Hdf5Fields fields) {
  const std::uint64_t version = fields.number(1), flags = fields.number(1);
  const std::uint64_t name_bytes = fields.number(2), type_bytes = fields.number(2), space_bytes = fields.number(2);
  if (version == 0 || version > 3 || (version > 1 && (flags & 1U) != 0)) return std::nullopt;
  fields.skip(version == 3 ? 1 : 0);  // character set
  const auto padded = [&](std::uint64_t bytes) { return version == 1 ? padded_to_8(bytes) : bytes; };
  const std::string_view name = before_nul(fields.text(padded(name_bytes)));
  const Hdf5Fields type = fields.part(padded(type_bytes));
  fields.skip(padded(space_bytes));
  if (fields.ended()) return std::nullopt;
  return AttributeParts{name, type, fields.rest()};
}

}  // namespace

Result<std::optional<std::string>> Hdf5Attributes::text(const Hdf5Header& header, std::string_view name) {
  for (const Hdf5Message& message : header.messages()) {
    if (message.type != Hdf5MessageType::attribute || message.shared) continue;
    const auto parts = attribute_parts(file_.fields(message.body));
    if (parts && parts->name == name) return text_of(parts->type, parts->value);
  }
  return std::optional<std::string>();
}

// A text of variable length is a length, the address of a global heap, and a number in it.
Result<std::optional<std::string>> Hdf5Attributes::text_of(Hdf5Fields type, Hdf5Fields value) {
  constexpr std::uint64_t kText = 3, kVariable = 9;
  const std::uint64_t kind = type.number(1) & 15U, bits = type.number(3), bytes = type.number(4);
  if (kind == kText)
    return std::optional(std::string(before_nul(value.text(std::min<std::uint64_t>(bytes, limits::kTensorNameMax)))));
  if (kind != kVariable || (bits & 15U) != 1) return std::optional<std::string>();
  const std::uint64_t length = value.number(4), heap = value.address(), number = value.number(4);
  if (value.ended()) return std::optional<std::string>();
  WEFT_TRY(const Collection* texts, collection(heap));
  const auto found = texts->objects.find(number);
  if (found == texts->objects.end() || length > std::min<std::uint64_t>(found->second.length, limits::kTensorNameMax))
    return std::optional<std::string>();
  Hdf5Fields fields = file_.fields(texts->bytes);
  fields.skip(found->second.offset);
  return std::optional(std::string(before_nul(fields.text(length))));
}

Result<const Hdf5Attributes::Collection*> Hdf5Attributes::collection(std::uint64_t at) {
  if (const auto known = collections_.find(at); known != collections_.end()) return &known->second;
  const std::uint64_t head_bytes = 8 + file_.widths().length;
  WEFT_TRY(const Hdf5Block head, file_.block(kGlobalHeap, at, head_bytes));
  WEFT_CHECK(Hdf5File::check_signature(kGlobalHeap, at, head, "GCOL"));
  Hdf5Fields size = file_.fields(head);
  size.skip(8);
  Collection one;
  WEFT_TRY(one.bytes, file_.more(kGlobalHeap, at, size.length()));
  Hdf5Fields fields = file_.fields(one.bytes);
  fields.skip(head_bytes);
  while (fields.remaining() >= head_bytes) {
    const std::uint64_t number = fields.number(2);
    fields.skip(6);  // references
    const std::uint64_t length = fields.length();
    if (number == 0 || length > fields.remaining()) break;  // 0: the rest is free
    one.objects.try_emplace(number, Range{fields.position(), length});
    fields.skip(std::min<std::uint64_t>(padded_to_8(length), fields.remaining()));
  }
  return &collections_.emplace(at, std::move(one)).first->second;
}

}  // namespace weft
