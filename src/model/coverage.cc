#include "weft/model/coverage.h"

#include <algorithm>

namespace weft {
namespace {

void add_saturated(std::uint64_t& sum, std::uint64_t more) {
  if (__builtin_add_overflow(sum, more, &sum)) sum = UINT64_MAX;
}

// Returns the bytes of the file that at least one range has.
std::uint64_t union_bytes(std::vector<Range>& ranges) {
  std::ranges::sort(ranges, {}, &Range::offset);
  std::uint64_t bytes = 0, end = 0;
  for (const Range& range : ranges) {
    const std::uint64_t begin = std::max(end, range.offset);
    end = std::max(end, range.offset + range.length);
    if (end > begin) bytes += end - begin;
  }
  return bytes;
}

}  // namespace

double Coverage::share() const {
  if (shown == 0 && hidden == 0) return 1;
  return static_cast<double>(shown) / (static_cast<double>(shown) + static_cast<double>(hidden));
}

std::vector<Coverage> coverage_of(const Manifest& manifest) {
  std::vector<Coverage> coverage(manifest.files.size());
  std::vector<std::vector<Range>> ranges(manifest.files.size());
  const auto add = [&](std::size_t file, std::uint32_t extent, std::uint64_t offset, std::uint64_t length) {
    ranges[file].push_back({manifest.files[file].extents[extent].offset + offset, length});
  };
  for (std::size_t i = 0; i < manifest.files.size(); ++i) {
    const File& file = manifest.files[i];
    for (const Tensor& tensor : file.tensors) {
      add_saturated(coverage[i].shown, stored_bytes(file, tensor));
      if (tensor.extent != kNoExtent) add(i, tensor.extent, 0, file.extents[tensor.extent].id.length);
      for (const TensorRun& run : tensor.runs) add(run.file, run.extent, run.offset, run.length);
    }
    for (const HiddenTensor& hidden : file.hidden) add_saturated(coverage[i].hidden, hidden.bytes);
  }
  for (std::size_t i = 0; i < ranges.size(); ++i) coverage[i].in_tensors = union_bytes(ranges[i]);
  return coverage;
}

}  // namespace weft
