// Rules that the formats share: where tensors lie, and which metadata of a file is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/model/format.h"

namespace weft {

// The part of a file with tensor data: from `begin` to the end of the file.
struct DataRegion {
  std::uint64_t begin = 0;  // ≤ file_size
  std::uint64_t file_size = 0;
  std::uint64_t alignment = 1;   // a power of two; padding before each tensor and after the last is shorter than this
  bool last_counts = false;      // of tensors with one name the last counts; else no name occurs twice
  Errc untiled = Errc::invalid;  // of overlaps, gaps and trailing bytes: Errc::unsupported if the format's library
                                 // reads such files
};

// A tensor that lies in one run of the main file.
struct RegionTensor {
  FoundTensor tensor;        // without parts
  std::uint64_t offset = 0;  // bytes from the start of the region
  std::uint64_t length = 0;  // bytes; 0 if a dimension is 0
};

// Sorts tensors by (offset, length, name) and sets the part of each. Errc::invalid names the tensor: its name occurs
// twice, or it ends beyond the file. region.untiled names the tensor: it overlaps another, it leaves a gap that is not
// padding, or the file goes on after the last one.
Result<std::vector<FoundTensor>> place_tensors(const DataRegion& region, std::vector<RegionTensor> tensors);

// Checks the guarantees of weft/model/format.h that need no file: names, shapes, strides, and lengths of parts.
// Errc::internal names the tensor: the format is wrong, whatever the file says.
Status check_layout(const Layout& layout);

// Returns the bytes from `position` to the next multiple of `alignment`, a power of two.
constexpr std::uint64_t padding_at(std::uint64_t position, std::uint64_t alignment) {
  return (alignment - (position & (alignment - 1))) & (alignment - 1);
}

// Returns the strides of Fortran order, where the first dimension is the fastest. No dimension is 0.
Strides fortran_strides(const Shape& shape);
// Returns the strides, or none if they are those of C order. Strides of dimensions of one element make no difference.
Strides needed_strides(const Shape& shape, Strides strides);

std::optional<std::string_view> find_duplicate(std::vector<std::string_view> keys);

// Errc::invalid: the name is not UTF-8. Errc::unsupported: the name is too long, or the file has too many tensors.
Status check_tensor_name(std::string_view name, std::size_t tensors_before);

// Appends to layout.hidden, or counts the tensor if the list is full. Any bytes are allowed as the name and the reason.
void hide(Layout& layout, HiddenTensor hidden);

// Sorts tensors as a layout has them.
void sort_by_place(std::vector<FoundTensor>& tensors);

// Moves all tensors and cuts of a file that begins `by` bytes after the start of the main file.
void move_places(Layout& layout, std::uint64_t by);

// Appends to layout.metadata if the limits allow it, else drops the entry.
void keep_metadata(Layout& layout, std::string_view key, std::string_view value);

// Returns "tensor \"encoder.weight\"", printable for any name.
std::string tensor_label(std::string_view name);

}  // namespace weft
