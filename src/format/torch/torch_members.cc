#include "format/torch/torch_members.h"

#include <fmt/core.h>

#include <span>

#include "base/text.h"

namespace weft {

Result<std::string> torch_member_text(ByteSource& archive, const ZipMember& member, std::uint64_t most) {
  if (!member.stored)
    return Error{Errc::unsupported, fmt::format("expected {} uncompressed, got it compressed", printable(member.name))};
  if (member.data.length > most)
    return Error{Errc::unsupported, fmt::format("expected at most {} bytes of {}, got {}", most, printable(member.name),
                                                member.data.length)};
  std::string text(static_cast<std::size_t>(member.data.length), '\0');
  WEFT_CHECK(archive.read(member.data.offset, std::as_writable_bytes(std::span(text))));
  return text;
}

Status check_torch_byte_order(ByteSource& archive, const ZipDirectory& members, std::string_view root) {
  constexpr std::string_view kLittle = "little";
  const ZipMember* order = members.find(fmt::format("{}byteorder", root));
  if (order == nullptr) return {};
  if (order->data.length == kLittle.size()) {
    WEFT_TRY(const std::string text, torch_member_text(archive, *order, kLittle.size()));
    if (text == kLittle) return {};
  }
  return Error{Errc::unsupported, "expected a little-endian file of PyTorch, got another byte order"};
}

}  // namespace weft
