#include "format/npy_array.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/limits.h"
#include "format/cursor.h"
#include "format/npy_header.h"

namespace weft {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

// Returns the error for a file with these first bytes. numpy.load() looks at them and not at the name.
Error other_content(std::span<const std::byte> head) {
  constexpr std::string_view kZip = "PK\x03\x04";
  constexpr std::string_view kEmptyZip = "PK\x05\x06";
  constexpr std::byte kPickle{0x80};
  const std::string_view begin(reinterpret_cast<const char*>(head.data()), head.size());
  if (begin.starts_with(kZip) || begin.starts_with(kEmptyZip))
    return {Errc::unsupported, "expected an npy file, got a zip archive"};
  if (head[0] == kPickle && head[1] >= std::byte{2} && head[1] <= std::byte{5})
    return {Errc::unsupported, "expected an npy file, got a pickle"};
  return {Errc::invalid, "expected the magic \"\\x93NUMPY\", got other bytes"};
}

Result<std::string> read_npy_header(HeaderCursor& cursor) {
  std::array<std::byte, 8> prefix{};
  WEFT_CHECK(cursor.read(prefix));
  if (!has_npy_magic(prefix)) return other_content(prefix);
  auto major = std::to_integer<unsigned>(prefix[6]), minor = std::to_integer<unsigned>(prefix[7]);
  if (major < 1 || major > 3 || minor != 0)
    return Error{Errc::invalid, fmt::format("expected npy version 1.0, 2.0 or 3.0, got {}.{}", major, minor)};
  std::uint64_t length = 0;
  if (major == 1) {
    WEFT_TRY(length, cursor.number<std::uint16_t>());
  } else {
    WEFT_TRY(length, cursor.number<std::uint32_t>());
  }
  if (length > limits::kNpyHeaderMax)
    return Error{cursor.lacking(length),
                 fmt::format("expected a header of at most {} bytes, got one of {}", limits::kNpyHeaderMax, length)};
  if (length > cursor.remaining())
    return Error{Errc::invalid, fmt::format("expected a header of {} bytes, got a file with {} bytes after its length",
                                            length, cursor.remaining())};
  return cursor.text(length);
}

Result<std::uint64_t> data_bytes(const NpyHeader& header, std::uint64_t element_bytes) {
  auto count = element_count(header.shape);
  std::uint64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, element_bytes, &bytes))
    return Error{Errc::invalid, fmt::format("header: expected fewer than 2^64 bytes, got shape {} of '{}'",
                                            shape_text(header.shape), header.descr)};
  return bytes;
}

}  // namespace

bool has_npy_magic(std::span<const std::byte> head) {
  return head.size() >= kNpyMagic.size() &&
         std::ranges::equal(head.first(kNpyMagic.size()), std::as_bytes(std::span(kNpyMagic)));
}

Result<NpyArray> read_npy_array(ByteSource& file, bool bytes_may_follow) {
  HeaderCursor cursor(file, file.size());
  WEFT_TRY(const std::string text, read_npy_header(cursor));
  WEFT_TRY(NpyHeader header, parse_npy_header(text));
  if (header.descr.empty())
    return Error{Errc::unsupported, "expected elements of one type, got an array of a structured type"};
  WEFT_TRY(const NpyElement element, parse_npy_descr(header.descr));
  if (element.pickled)
    return Error{Errc::unsupported, "expected elements of a fixed size, got an array of Python objects"};
  WEFT_TRY(const std::uint64_t length, data_bytes(header, element.bytes));
  if (length > cursor.remaining() || (length < cursor.remaining() && !bytes_may_follow))
    return Error{cursor.lacking(length), fmt::format("expected {} bytes of data for shape {} of '{}', got {}", length,
                                                     shape_text(header.shape), header.descr, cursor.remaining())};
  const bool fortran_order = header.fortran_order && header.shape.size() > 1;
  return NpyArray{
      element.dtype, std::move(header.shape), fortran_order, std::string(header.dict), {cursor.position(), length}};
}

}  // namespace weft
