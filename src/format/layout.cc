#include "format/layout.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/limits.h"
#include "base/text.h"

namespace weft {
namespace {

void keep_last(std::vector<RegionTensor>& tensors) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const RegionTensor& a, const RegionTensor& b) { return a.tensor.name < b.tensor.name; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (i + 1 == tensors.size() || tensors[i].tensor.name != tensors[i + 1].tensor.name) {
      if (kept != i) tensors[kept] = std::move(tensors[i]);
      ++kept;
    }
  tensors.resize(kept);
}

Status resolve_duplicates(std::vector<RegionTensor>& tensors, bool last_counts) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const RegionTensor& one : tensors) names.emplace_back(one.tensor.name);
  const auto twice = find_duplicate(std::move(names));
  if (!twice) return {};
  if (!last_counts)
    return Error{Errc::invalid, fmt::format("{}: expected each name once, got it twice", tensor_label(*twice))};
  keep_last(tensors);
  return {};
}

Status check_inside(const std::vector<RegionTensor>& tensors, std::uint64_t size) {
  for (const RegionTensor& one : tensors)
    if (one.offset > size || one.length > size - one.offset)
      return Error{Errc::invalid,
                   fmt::format("{}: expected {} bytes of data at offset {}, got a file with {} bytes of data",
                               tensor_label(one.tensor.name), one.length, one.offset, size)};
  return {};
}

// Checks that the tensor begins at the first aligned offset from `end` on, where the tensor before it ends.
Status check_begin(const DataRegion& region, const RegionTensor& one, const RegionTensor* before, std::uint64_t end) {
  const std::uint64_t padding = padding_at(end, region.alignment);
  std::string expected =
      fmt::format("{}: expected data to begin at offset {}", tensor_label(one.tensor.name), end + padding);
  if (one.offset < end)
    return Error{region.untiled,
                 fmt::format("{}, got {}, which overlaps {}", expected, one.offset, tensor_label(before->tensor.name))};
  if (one.offset - end != padding)
    return Error{region.untiled, fmt::format("{}, got {}, which leaves a gap", expected, one.offset)};
  return {};
}

Status check_file_end(const DataRegion& region, const RegionTensor* last, std::uint64_t end) {
  const std::uint64_t rest = region.file_size - region.begin - end;
  if (rest <= padding_at(end, region.alignment)) return {};
  std::string after = last == nullptr ? "header" : tensor_label(last->tensor.name);
  return Error{region.untiled,
               fmt::format("{}: expected the file to end after it, got {} trailing bytes", after, rest)};
}

// `tensors` are sorted.
Status check_tiling(const DataRegion& region, const std::vector<RegionTensor>& tensors) {
  const RegionTensor* before = nullptr;
  std::uint64_t end = 0;
  for (const RegionTensor& one : tensors) {
    WEFT_CHECK(check_begin(region, one, before, end));
    end = one.offset + one.length;
    before = &one;
  }
  return check_file_end(region, before, end);
}

Error broken(const FoundTensor& tensor, std::string_view what) {
  return Error{Errc::internal, fmt::format("{}: {}", tensor_label(tensor.name), what)};
}

// Returns the bytes of all cells.
Result<std::optional<std::uint64_t>> memory_of_grid(const FoundTensor& tensor) {
  if (!tensor.strides.empty()) return broken(tensor, "it has strides and a grid");
  const auto grid = Grid::of(tensor.dtype, tensor.shape, tensor.grid);
  if (!grid.ok()) return broken(tensor, grid.error().message);
  if (grid->cells_are_runs()) return broken(tensor, "it needs no grid");
  return std::optional(grid->memory_bytes());
}

// Returns the bytes that all parts of a tensor must have together. Nothing for npy_other: only the npy header says it.
Result<std::optional<std::uint64_t>> memory_of(const FoundTensor& tensor) {
  if (!tensor.grid.empty()) return memory_of_grid(tensor);
  if (tensor.dtype == DType::npy_other) return std::optional<std::uint64_t>();
  auto bytes = tensor.strides.empty() ? tensor_bytes(tensor.dtype, tensor.shape)
                                      : strided_bytes(tensor.dtype, tensor.shape, tensor.strides);
  if (!bytes.ok()) return broken(tensor, bytes.error().message);
  return std::optional(*bytes);
}

Status check_parts(const Layout& layout, const FoundTensor& tensor) {
  std::uint64_t sum = 0;
  for (const TensorPart& part : tensor.parts) {
    if (part.file > layout.others.size()) return broken(tensor, "a part lies in a file that is not listed");
    if (part.length == 0) return broken(tensor, "a part is empty");
    if (!tensor.strides.empty() && part.length % dtype_info(tensor.dtype)->block_bytes != 0)
      return broken(tensor, "a part cuts an element");
    if (__builtin_add_overflow(sum, part.length, &sum)) return broken(tensor, "its parts exceed 2^64 bytes");
  }
  WEFT_TRY(const std::optional<std::uint64_t> memory, memory_of(tensor));
  if (memory && *memory != sum)
    return broken(tensor, fmt::format("expected parts of {} bytes together, got {}", *memory, sum));
  return {};
}

Status check_tensor(const Layout& layout, const FoundTensor& tensor) {
  if (!valid_utf8(tensor.name) || tensor.name.size() > limits::kTensorNameMax) return broken(tensor, "its name");
  if (tensor.shape.size() > limits::kDimensionsMax || !element_count(tensor.shape)) return broken(tensor, "its shape");
  if (dtype_info(tensor.dtype) == nullptr) return broken(tensor, "its type is unknown");
  if (!tensor.strides.empty() && tensor.dtype == DType::npy_other) return broken(tensor, "its type has no strides");
  return check_parts(layout, tensor);
}

Status check_cuts_and_hidden(const Layout& layout) {
  for (const TensorPart& cut : layout.cuts)
    if (cut.file > layout.others.size() || cut.length == 0)
      return Error{Errc::internal, "a cut is empty or lies in a file that is not listed"};
  if (layout.hidden.size() > limits::kHiddenTensorsMax)
    return Error{Errc::internal, "the layout lists too many hidden tensors"};
  for (const HiddenTensor& hidden : layout.hidden)
    if (!valid_utf8(hidden.name) || hidden.name.size() > limits::kTensorNameMax || hidden.why.empty() ||
        hidden.why.size() > limits::kHiddenReasonMax)
      return Error{Errc::internal, fmt::format("{}: its name or its reason", tensor_label(hidden.name))};
  return {};
}

std::tuple<std::uint32_t, std::uint64_t, std::uint64_t> place_of(const TensorPart& part) {
  return {part.file, part.offset, part.length};
}

}  // namespace

Result<std::vector<FoundTensor>> place_tensors(const DataRegion& region, std::vector<RegionTensor> tensors) {
  WEFT_CHECK(resolve_duplicates(tensors, region.last_counts));
  std::sort(tensors.begin(), tensors.end(), [](const RegionTensor& a, const RegionTensor& b) {
    return std::tie(a.offset, a.length, a.tensor.name) < std::tie(b.offset, b.length, b.tensor.name);
  });
  WEFT_CHECK(check_inside(tensors, region.file_size - region.begin));
  WEFT_CHECK(check_tiling(region, tensors));
  std::vector<FoundTensor> placed;
  placed.reserve(tensors.size());
  for (RegionTensor& one : tensors) {
    FoundTensor& tensor = placed.emplace_back(std::move(one.tensor));
    if (one.length > 0) tensor.parts.push_back({0, region.begin + one.offset, one.length});
  }
  return placed;
}

Status check_layout(const Layout& layout) {
  if (layout.tensors.size() > limits::kTensorsPerFileMax)
    return Error{Errc::internal, "the layout has too many tensors"};
  WEFT_CHECK(check_cuts_and_hidden(layout));
  std::vector<std::string_view> names;
  names.reserve(layout.tensors.size());
  const FoundTensor* before = nullptr;
  for (const FoundTensor& tensor : layout.tensors) {
    WEFT_CHECK(check_tensor(layout, tensor));
    if (before != nullptr && !tensor.parts.empty() && place_of(tensor.parts.front()) < place_of(before->parts.front()))
      return broken(tensor, fmt::format("expected it before {}", tensor_label(before->name)));
    if (!tensor.parts.empty()) before = &tensor;
    names.emplace_back(tensor.name);
  }
  if (auto twice = find_duplicate(std::move(names)))
    return Error{Errc::internal, fmt::format("{}: the layout has it twice", tensor_label(*twice))};
  return {};
}

Strides fortran_strides(const Shape& shape) {
  Strides strides;
  std::uint64_t step = 1;
  for (const std::uint64_t dimension : shape) {
    strides.push_back(step);
    step *= dimension;
  }
  return strides;
}

Strides needed_strides(const Shape& shape, Strides strides) {
  const Strides plain = c_strides(shape);
  for (std::size_t i = 0; i < plain.size(); ++i)
    if (shape[i] != 1 && strides[i] != plain[i]) return strides;
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
    return Error{Errc::unsupported, fmt::format("{}: expected a name of at most {} bytes, got {}", tensor_label(name),
                                                limits::kTensorNameMax, name.size())};
  if (!valid_utf8(name))
    return Error{Errc::invalid, fmt::format("{}: expected a name in UTF-8, got other bytes", tensor_label(name))};
  if (tensors_before >= limits::kTensorsPerFileMax)
    return Error{Errc::unsupported, fmt::format("expected at most {} tensors, got more", limits::kTensorsPerFileMax)};
  return {};
}

void hide(Layout& layout, HiddenTensor hidden) {
  constexpr std::size_t kPrintableSpare = 32;  // bytes by which printable() may exceed its bound
  if (layout.hidden.size() >= limits::kHiddenTensorsMax) {
    ++layout.hidden_more;
    return;
  }
  if (!valid_utf8(hidden.name) || hidden.name.size() > limits::kTensorNameMax)
    hidden.name = printable(hidden.name, limits::kTensorNameMax - kPrintableSpare);
  hidden.why = printable(hidden.why, limits::kHiddenReasonMax - kPrintableSpare);
  layout.hidden.push_back(std::move(hidden));
}

void sort_by_place(std::vector<FoundTensor>& tensors) {
  const auto place = [](const FoundTensor& tensor) {
    const TensorPart first = tensor.parts.empty() ? TensorPart{} : tensor.parts.front();
    return std::tuple(first.file, first.offset, first.length);
  };
  std::ranges::stable_sort(tensors, {}, place);
}

void move_places(Layout& layout, std::uint64_t by) {
  for (FoundTensor& tensor : layout.tensors)
    for (TensorPart& part : tensor.parts) part.offset += by;
  for (TensorPart& cut : layout.cuts) cut.offset += by;
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
