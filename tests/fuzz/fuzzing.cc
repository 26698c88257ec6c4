#include "fuzzing.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "base/limits.h"
#include "base/text.h"

namespace weft::fuzzing {
namespace {

// Checks a tensor of a single file. `end` is where the one before it ends, or begins if tensors may overlap.
void require_tensor(const FoundTensor& tensor, std::uint64_t end, std::uint64_t file_size) {
  require(tensor.parts.empty() || tensor.parts.front().offset >= end,
          "tensors are sorted, and do not overlap unless they may");
  std::uint64_t length = 0;
  for (const TensorPart& part : tensor.parts) {
    require(part.file == 0 && part.length > 0 && part.offset <= file_size && part.length <= file_size - part.offset,
            "parts lie in the file");
    length += part.length;
  }
  require(valid_utf8(tensor.name) && valid_utf8(tensor.descr), "names are UTF-8");
  require(tensor.shape.size() <= limits::kDimensionsMax, "dimensions are bounded");
  if (!tensor.grid.empty()) return;  // parse_file() compares the parts with the grid
  if (tensor.dtype == DType::npy_other) {
    require(!tensor.descr.empty(), "other types have a descr");
    return;
  }
  auto bytes = tensor.strides.empty() ? tensor_bytes(tensor.dtype, tensor.shape)
                                      : strided_bytes(tensor.dtype, tensor.shape, tensor.strides);
  require(bytes.ok() && *bytes == length, "type, shape and strides agree with the length");
}

}  // namespace

void require_sound(const Layout& layout, std::uint64_t file_size, bool may_overlap) {
  std::uint64_t end = 0;
  std::set<std::string_view> names;
  for (const FoundTensor& tensor : layout.tensors) {
    require(may_overlap || tensor.parts.size() <= 1, "a tensor is one part, if tensors may not overlap");
    require_tensor(tensor, end, file_size);
    require(names.insert(tensor.name).second, "names are unique");
    if (!tensor.parts.empty()) end = tensor.parts.front().offset + (may_overlap ? 0 : tensor.parts.front().length);
  }
  for (const TensorPart& cut : layout.cuts)
    require(cut.file == 0 && cut.length > 0 && cut.offset <= file_size && cut.length <= file_size - cut.offset,
            "cuts lie in the file");
  require(layout.hidden.size() <= limits::kHiddenTensorsMax, "hidden tensors are bounded");
  for (const HiddenTensor& hidden : layout.hidden)
    require(valid_utf8(hidden.name) && valid_utf8(hidden.why) && !hidden.why.empty(), "hidden tensors have a reason");
  require(layout.metadata.size() <= limits::kMetadataEntriesMax, "metadata is bounded");
  for (const auto& [key, value] : layout.metadata) require(valid_utf8(key) && valid_utf8(value), "metadata is UTF-8");
}

namespace {

class CheckedRecords final : public RecordSink {
 public:
  explicit CheckedRecords(std::uint64_t size) : size_(size) {}

  Status record(const Record& record) override {
    require(!record.name.empty() && record.name.size() <= limits::kRecordNameMax, "names are bounded");
    require(record.offset <= size_ && record.length <= size_ - record.offset, "records lie in the file");
    return {};
  }
  Status link(std::string_view name, std::string_view target) override {
    require(is_path(name) && is_path(target), "links are paths");
    return {};
  }
  Status left_out(std::string_view /*name*/, std::string_view why) override {
    require(!why.empty(), "what is left out has a reason");
    return {};
  }

 private:
  static bool is_path(std::string_view path) {
    for (const std::string_view one : split(path, '/'))
      if (one.empty() || one == "." || one == ".." || one.size() > limits::kNameMax) return false;
    return valid_utf8(path) && path.find('\0') == path.npos;
  }

  const std::uint64_t size_;
};

}  // namespace

void fuzz_container(const ContainerFormat& format, const std::uint8_t* data, std::size_t size) {
  if (size == 0) return;
  const std::size_t part = std::size_t{data[0]} * 16 + 1;
  Input input(data + 1, size - 1);
  const auto file = std::as_bytes(std::span(data + 1, size - 1));
  CheckedRecords sink(file.size());
  const auto scanner = format.scan(file.size(), sink);
  Status status;
  for (std::size_t at = 0; at < file.size() && status.ok(); at += part)
    status = scanner->feed(file.subspan(at, std::min(part, file.size() - at)));
  if (status.ok()) status = scanner->finish(input);
  if (!status.ok()) require_clear(status.error(), "");
}

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

void fuzz_format(std::string_view file_name, const std::uint8_t* data, std::size_t size, bool may_overlap) {
  Input input(data, size);
  auto layout = parse_file("place", file_name, input);
  if (layout.ok())
    require_sound(*layout, size, may_overlap);
  else
    require_clear(layout.error(), "place: ");
}

}  // namespace weft::fuzzing
