// What the formats share: the rules for where tensors lie, and for what is kept of a file's own metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/format.h"

namespace weft {

// Where a file keeps tensor data: from `begin` to its end.
struct DataRegion {
  std::uint64_t begin = 0;  // ≤ file_size
  std::uint64_t file_size = 0;
  std::uint64_t alignment = 1;  // a power of two; padding before each tensor and after the last is shorter than this
};

// A tensor that lies in one run of the main file.
struct RegionTensor {
  FoundTensor tensor;        // without parts
  std::uint64_t offset = 0;  // bytes from the start of the region
  std::uint64_t length = 0;  // bytes; 0 where a dimension is 0
};

// Sorts by (offset, length, name) and gives each tensor its part. Errc::invalid, naming the tensor, when a name occurs
// twice, or when tensors overlap, leave a gap that is no padding, or do not end with the file.
Result<std::vector<FoundTensor>> place_tensors(const DataRegion& region, std::vector<RegionTensor> tensors);

// The promises of weft/format.h that need no file: of names, shapes, strides, and the lengths of parts. Errc::internal
// names the tensor: the format is wrong, whatever the file says.
Status check_layout(const Layout& layout);

// Bytes from `position` up to the next multiple of a power of two.
constexpr std::uint64_t padding_at(std::uint64_t position, std::uint64_t alignment) {
  return (alignment - (position & (alignment - 1))) & (alignment - 1);
}

std::optional<std::string_view> find_duplicate(std::vector<std::string_view> keys);

// Errc::invalid with what is wrong with a tensor's name, or its being one too many.
Status check_tensor_name(std::string_view name, std::size_t tensors_before);

// Appends to layout.metadata what limits.h lets it keep, and drops the rest.
void keep_metadata(Layout& layout, std::string_view key, std::string_view value);

// "tensor \"encoder.weight\"", printable whatever the name.
std::string tensor_label(std::string_view name);

}  // namespace weft
