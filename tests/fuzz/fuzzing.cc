#include "fuzzing.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "base/limits.h"
#include "base/text.h"

namespace weft::fuzzing {
namespace {

void require_tensor(const TensorExtent& tensor, std::uint64_t end, std::uint64_t file_size) {
  require(tensor.offset >= end, "tensors are sorted and do not overlap");
  require(tensor.offset <= file_size && tensor.length <= file_size - tensor.offset, "tensors lie in the file");
  require(valid_utf8(tensor.name) && valid_utf8(tensor.descr), "names are UTF-8");
  require(tensor.shape.size() <= limits::kDimensionsMax, "dimensions are bounded");
  if (tensor.dtype == DType::npy_other) {
    require(!tensor.descr.empty(), "other types have a descr");
    return;
  }
  auto bytes = tensor_bytes(tensor.dtype, tensor.shape);
  require(bytes.ok() && *bytes == tensor.length, "type and shape agree with the length");
}

void require_sound(const Layout& layout, std::uint64_t file_size) {
  std::uint64_t end = 0;
  std::set<std::string_view> names;
  for (const TensorExtent& tensor : layout.tensors) {
    require_tensor(tensor, end, file_size);
    require(names.insert(tensor.name).second, "names are unique");
    end = tensor.offset + tensor.length;
  }
  require(layout.metadata.size() <= limits::kMetadataEntriesMax, "metadata is bounded");
  for (const auto& [key, value] : layout.metadata) require(valid_utf8(key) && valid_utf8(value), "metadata is UTF-8");
}

}  // namespace

Status Input::read(std::uint64_t offset, std::span<std::byte> out) {
  require(offset <= bytes_.size() && out.size() <= bytes_.size() - offset, "reads stay in the file");
  if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  return {};
}

void require(bool holds, std::string_view promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %.*s\n", static_cast<int>(promise.size()), promise.data());
  std::abort();
}

void require_clear(const Error& error, std::string_view where) {
  require(error.message.starts_with(where), "messages begin with the place");
  require(error.message.find('\n') == std::string::npos, "messages are one line");
  require(error.code == Errc::invalid || error.code == Errc::unsupported, "bad input is called that");
}

void fuzz_format(std::string_view file_name, const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  auto layout = parse_file("place", file_name, input);
  if (layout.ok())
    require_sound(*layout, size);
  else
    require_clear(layout.error(), "place: ");
}

}  // namespace weft::fuzzing
