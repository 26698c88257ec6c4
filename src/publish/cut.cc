#include "publish/cut.h"

#include <fmt/core.h>

#include "base/text.h"
#include "weft/manifest.h"

namespace weft {

Result<Cut> cut_file(std::uint64_t size, std::span<const TensorExtent> tensors) {
  Cut cut;
  cut.tensor_extent.reserve(tensors.size());
  std::uint64_t end = 0;  // of what is cut so far
  for (const TensorExtent& tensor : tensors) {
    if (tensor.length == 0) {
      cut.tensor_extent.push_back(kNoExtent);
      continue;
    }
    if (tensor.offset < end || tensor.offset > size || tensor.length > size - tensor.offset)
      return Error{Errc::internal, fmt::format("tensor {}: expected its bytes within {}..{}, got {} bytes at {}",
                                               printable(tensor.name), end, size, tensor.length, tensor.offset)};
    if (tensor.offset > end) cut.ranges.push_back({end, tensor.offset - end});
    cut.tensor_extent.push_back(static_cast<std::uint32_t>(cut.ranges.size()));
    cut.ranges.push_back({tensor.offset, tensor.length});
    end = tensor.offset + tensor.length;
  }
  if (end < size) cut.ranges.push_back({end, size - end});
  return cut;
}

}  // namespace weft
