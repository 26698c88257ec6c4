#include "reading/gathered_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "reading/box_reader.h"
#include "weft/bytes/run_list.h"

namespace weft {
namespace {

std::uint64_t memory_bytes(const GatheredTensor& tensor) {
  return tensor.runs.empty() ? 0 : end_of(tensor.runs.back());
}

std::uint64_t data_bytes(const GatheredTensor& tensor) {
  if (tensor.grid) return tensor.grid->bytes();
  if (tensor.strides.empty()) return memory_bytes(tensor);
  return element_count(tensor.shape).value_or(0) * tensor.element_bytes;
}

class GatheredFile final : public OpenFile {
 public:
  explicit GatheredFile(GatheredTensor tensor)
      : tensor_(std::move(tensor)), size_(tensor_.head.size() + data_bytes(tensor_)) {}

  std::uint64_t size() const override { return size_; }
  int backing_fd() const override { return -1; }

  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset >= size_ || out.empty()) return std::size_t{0};
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size_ - offset));
    out = out.first(count);
    if (offset < tensor_.head.size()) {
      const std::string_view part = std::string_view(tensor_.head).substr(offset, count);
      std::memcpy(out.data(), part.data(), part.size());
      out = out.subspan(part.size());
      offset += part.size();
    }
    WEFT_CHECK(read_data(offset - tensor_.head.size(), out));
    return count;
  }

 private:
  Status read_data(std::uint64_t offset, std::span<std::byte> out) const {
    if (tensor_.grid) return read_boxes(offset, out);
    if (tensor_.strides.empty()) return read_memory(offset, out);
    while (!out.empty()) {
      const auto [at, length] = piece_at(offset);
      const auto part = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(length, out.size())));
      WEFT_CHECK(read_memory(at, part));
      out = out.subspan(part.size());
      offset += part.size();
    }
    return {};
  }

  Status read_boxes(std::uint64_t offset, std::span<std::byte> out) const {
    BoxReader reader(*tensor_.grid, {offset, out.size()}, out);
    return reader.read([this](std::uint64_t at, std::span<std::byte> to) { return read_memory(at, to); });
  }

  // Returns the place in the memory of the byte at `offset` of the elements in C order, with the number of bytes that
  // are contiguous in both orders.
  Range piece_at(std::uint64_t offset) const {
    std::uint64_t element = offset / tensor_.element_bytes;
    const std::uint64_t within = offset % tensor_.element_bytes;
    std::uint64_t at = 0, together = 1;
    for (std::size_t i = tensor_.shape.size(); i-- > 0;) {
      const std::uint64_t index = element % tensor_.shape[i];
      element /= tensor_.shape[i];
      at += index * tensor_.strides[i];
      if (i + 1 == tensor_.shape.size() && tensor_.strides[i] == 1) together = tensor_.shape[i] - index;
    }
    return {at * tensor_.element_bytes + within, together * tensor_.element_bytes - within};
  }

  Status read_memory(std::uint64_t offset, std::span<std::byte> out) const {
    for (auto run = run_at(tensor_.runs, offset); !out.empty(); ++run) {
      const std::uint64_t within = offset - run->offset;
      const auto part = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(run->length - within, out.size())));
      WEFT_CHECK(read_run(*run, within, part));
      out = out.subspan(part.size());
      offset += part.size();
    }
    return {};
  }

  static Status read_run(const GatheredTensor::Run& run, std::uint64_t within, std::span<std::byte> out) {
    WEFT_TRY(const std::size_t got, run.file->read(run.at + within, out));
    if (got != out.size()) return Error{Errc::io, "a published file ended before its tensor"};
    return {};
  }

  const GatheredTensor tensor_;
  const std::uint64_t size_;
};

}  // namespace

void GatheredTensor::add(std::shared_ptr<OpenFile> file, Range range) {
  runs.push_back({memory_bytes(*this), range.length, std::move(file), range.offset});
}

std::shared_ptr<OpenFile> open_gathered(GatheredTensor tensor) {
  return std::make_shared<GatheredFile>(std::move(tensor));
}

}  // namespace weft
