#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "weft/model/tree.h"

namespace weft {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlign = 64;
constexpr std::size_t kShortLengthMax = 0xffff;  // of version 1.0

std::string dict_of(DType dtype, std::span<const std::uint64_t> shape) {
  const DTypeInfo& info = *dtype_info(dtype);
  if (info.block_elements == 1) return npy_dict_text(info.npy_descr, shape);
  if (shape.empty() || shape.back() % info.block_elements != 0) {
    std::uint64_t bytes = tensor_bytes(dtype, shape).ok() ? tensor_bytes(dtype, shape).value() : 0;
    return npy_dict_text("|V1", std::span(&bytes, 1));
  }
  Shape blocks(shape.begin(), shape.end());
  blocks.back() /= info.block_elements;
  return npy_dict_text(info.npy_descr, blocks);
}

std::string_view without_padding(std::string_view dict) {
  auto last = dict.find_last_not_of(" \n");
  return dict.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// True if the dict needs version 3.0, which is UTF-8. Versions 1.0 and 2.0 are Latin-1.
bool needs_utf8(std::string_view dict) {
  return valid_utf8(dict) && std::any_of(dict.begin(), dict.end(), [](char c) { return c < 0; });
}

std::string with_prefix(std::string_view dict) {
  auto padded = [&](std::size_t prefix) { return (prefix + dict.size() + 1 + kAlign - 1) / kAlign * kAlign - prefix; };
  constexpr std::size_t kShortPrefix = kMagic.size() + 2 + 2, kLongPrefix = kMagic.size() + 2 + 4;
  char version = needs_utf8(dict) ? 3 : padded(kShortPrefix) > kShortLengthMax ? 2 : 1;
  std::size_t prefix = version == 1 ? kShortPrefix : kLongPrefix;
  std::size_t length = padded(prefix);
  std::string out(kMagic);
  out += version;
  out += '\0';
  for (std::size_t i = out.size(), shift = 0; i < prefix; ++i, shift += 8) out += static_cast<char>(length >> shift);
  out += dict;
  out.append(length - dict.size() - 1, ' ');
  return out += '\n';
}

}  // namespace

std::string npy_header(DType dtype, std::span<const std::uint64_t> shape, std::string_view descr) {
  return with_prefix(descr.empty() ? dict_of(dtype, shape) : without_padding(descr));
}

}  // namespace weft
