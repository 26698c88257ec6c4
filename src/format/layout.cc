#include "format/layout.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "base/limits.h"
#include "base/text.h"

namespace weft {
namespace {

Status check_unique(const std::vector<TensorExtent>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const TensorExtent& tensor : tensors) names.emplace_back(tensor.name);
  if (auto twice = find_duplicate(std::move(names)))
    return Error{Errc::invalid, fmt::format("{}: expected each name once, got it twice", tensor_label(*twice))};
  return {};
}

// The tensor must begin at the first aligned offset at or after `end`, where the one before it ends.
Status check_begin(const TensorExtent& tensor, const TensorExtent* before, std::uint64_t end, std::uint64_t alignment) {
  std::string expected = fmt::format("{}: expected data to begin at offset {}", tensor_label(tensor.name),
                                     end + padding_at(end, alignment));
  if (tensor.offset < end)
    return Error{Errc::invalid,
                 fmt::format("{}, got {}, which overlaps {}", expected, tensor.offset, tensor_label(before->name))};
  if (tensor.offset - end != padding_at(end, alignment))
    return Error{Errc::invalid, fmt::format("{}, got {}, which leaves a gap", expected, tensor.offset)};
  return {};
}

Status check_file_end(const TensorExtent* last, std::uint64_t end, std::uint64_t size, std::uint64_t alignment) {
  if (size - end <= padding_at(end, alignment)) return {};
  std::string after = last == nullptr ? "header" : tensor_label(last->name);
  return Error{Errc::invalid,
               fmt::format("{}: expected the file to end after it, got {} trailing bytes", after, size - end)};
}

}  // namespace

Status place_tensors(const DataRegion& region, std::vector<TensorExtent>& tensors) {
  WEFT_CHECK(check_unique(tensors));
  std::sort(tensors.begin(), tensors.end(), [](const TensorExtent& a, const TensorExtent& b) {
    return std::tie(a.offset, a.length, a.name) < std::tie(b.offset, b.length, b.name);
  });
  const std::uint64_t size = region.file_size - region.begin;
  const TensorExtent* before = nullptr;
  std::uint64_t end = 0;
  for (TensorExtent& tensor : tensors) {
    if (tensor.offset > size || tensor.length > size - tensor.offset)
      return Error{Errc::invalid,
                   fmt::format("{}: expected {} bytes of data at offset {}, got a file with {} bytes of data",
                               tensor_label(tensor.name), tensor.length, tensor.offset, size)};
    WEFT_CHECK(check_begin(tensor, before, end, region.alignment));
    end = tensor.offset + tensor.length;
    before = &tensor;
  }
  WEFT_CHECK(check_file_end(before, end, size, region.alignment));
  for (TensorExtent& tensor : tensors) tensor.offset += region.begin;
  return {};
}

std::optional<std::string_view> find_duplicate(std::vector<std::string_view> keys) {
  std::sort(keys.begin(), keys.end());
  auto it = std::adjacent_find(keys.begin(), keys.end());
  if (it == keys.end()) return std::nullopt;
  return *it;
}

Status check_tensor_name(std::string_view name, std::size_t tensors_before) {
  if (name.size() > limits::kTensorNameMax)
    return Error{Errc::invalid, fmt::format("{}: expected a name of at most {} bytes, got {}", tensor_label(name),
                                            limits::kTensorNameMax, name.size())};
  if (!valid_utf8(name))
    return Error{Errc::invalid, fmt::format("{}: expected a name in UTF-8, got other bytes", tensor_label(name))};
  if (tensors_before >= limits::kTensorsPerFileMax)
    return Error{Errc::invalid, fmt::format("expected at most {} tensors, got more", limits::kTensorsPerFileMax)};
  return {};
}

void keep_metadata(Layout& layout, std::string_view key, std::string_view value) {
  if (layout.metadata.size() >= limits::kMetadataEntriesMax) return;
  if (key.size() > limits::kMetadataTextMax || value.size() > limits::kMetadataTextMax) return;
  if (!valid_utf8(key) || !valid_utf8(value)) return;
  layout.metadata.emplace_back(key, value);
}

std::string tensor_label(std::string_view name) {
  return fmt::format("tensor \"{}\"", printable(name));
}

}  // namespace weft
