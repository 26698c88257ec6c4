// npy 1.0, 2.0 and 3.0: magic, version, header length, header (a Python dict), then the elements of one array. numpy
// also reads arrays of structured types and of Python objects, bytes after the array, and archives and pickles of this
// name. These are Errc::unsupported.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/limits.h"
#include "base/text.h"
#include "format/builtin.h"
#include "format/cursor.h"
#include "format/npy_header.h"
#include "weft/content.h"

namespace weft {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::string_view kSuffix = ".npy";

bool has_magic(std::span<const std::byte> head) {
  return head.size() >= kNpyMagic.size() &&
         std::ranges::equal(head.first(kNpyMagic.size()), std::as_bytes(std::span(kNpyMagic)));
}

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
  if (!has_magic(prefix)) return other_content(prefix);
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

std::string_view tensor_name(std::string_view file_name) {
  if (file_name.ends_with(kSuffix)) file_name.remove_suffix(kSuffix.size());
  return file_name;
}

// True if the dtype does not describe the array, so that the header's dict is kept. Fortran order makes no difference
// below two dimensions.
bool needs_descr(const NpyHeader& header, const NpyElement& element) {
  return element.dtype == DType::npy_other || (header.fortran_order && header.shape.size() > 1);
}

class Npy final : public Format {
 public:
  std::string_view name() const override { return "npy"; }

  bool claims(std::string_view file_name, std::span<const std::byte> head) const override {
    return file_name.ends_with(kSuffix) || has_magic(head);
  }

  Result<Layout> parse(FormatInput& files) const override {
    ByteSource& source = files.main();
    HeaderCursor cursor(source, source.size());
    WEFT_TRY(std::string text, read_npy_header(cursor));
    WEFT_TRY(NpyHeader header, parse_npy_header(text));
    if (header.descr.empty())
      return Error{Errc::unsupported, "expected elements of one type, got an array of a structured type"};
    WEFT_TRY(NpyElement element, parse_npy_descr(header.descr));
    if (element.pickled)
      return Error{Errc::unsupported, "expected elements of a fixed size, got an array of Python objects"};
    WEFT_TRY(std::uint64_t length, data_bytes(header, element.bytes));
    if (length != cursor.remaining())
      return Error{cursor.lacking(length), fmt::format("expected {} bytes of data for shape {} of '{}', got {}", length,
                                                       shape_text(header.shape), header.descr, cursor.remaining())};
    return one_tensor(files.name(), header, element, {cursor.position(), length});
  }

 private:
  Layout one_tensor(std::string_view file_name, const NpyHeader& header, const NpyElement& element, Range data) const {
    FoundTensor tensor;
    tensor.name = tensor_name(file_name);
    tensor.shape = header.shape;
    tensor.dtype = element.dtype;
    if (needs_descr(header, element)) {
      tensor.dtype = DType::npy_other;
      tensor.descr = header.dict;
    }
    if (data.length > 0) tensor.parts.push_back({0, data.offset, data.length});
    Layout layout;
    layout.format = name();
    layout.tensors.push_back(std::move(tensor));
    return layout;
  }
};

}  // namespace

const Format& npy_format() {
  static const Npy format;
  return format;
}

}  // namespace weft
