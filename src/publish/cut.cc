#include "publish/cut.h"

#include <fmt/core.h>

#include <algorithm>

#include "weft/bytes/run_list.h"

namespace weft {
namespace {

// Sorts the runs and unites those that overlap.
std::vector<Range> united(std::vector<Range> runs) {
  std::ranges::sort(runs);
  std::vector<Range> out;
  for (const Range& run : runs) {
    if (out.empty() || run.offset >= end_of(out.back()))
      out.push_back(run);
    else
      out.back().length = std::max(end_of(out.back()), end_of(run)) - out.back().offset;
  }
  return out;
}

TensorRun place_part(const TensorPart& part, const PartFiles& files, std::span<const std::vector<Range>> cuts) {
  const std::uint32_t file = files[part.file];
  const auto range = run_at(cuts[file], part.offset);
  return {file, static_cast<std::uint32_t>(range - cuts[file].begin()), part.offset - range->offset, part.length};
}

}  // namespace

Result<std::vector<Range>> cut_file(std::uint64_t size, std::vector<Range> runs) {
  for (const Range& run : runs)
    if (run.length == 0 || run.offset > size || run.length > size - run.offset)
      return Error{Errc::internal,
                   fmt::format("expected tensors within {} bytes, got {} bytes at {}", size, run.length, run.offset)};
  std::vector<Range> ranges;
  std::uint64_t end = 0;  // end of the last range
  for (const Range& run : united(std::move(runs))) {
    if (run.offset > end) ranges.push_back({end, run.offset - end});
    ranges.push_back(run);
    end = end_of(run);
  }
  if (end < size) ranges.push_back({end, size - end});
  return ranges;
}

Tensor place_tensor(FoundTensor found, const PartFiles& files, std::span<const std::vector<Range>> cuts) {
  Tensor tensor{std::move(found.name), found.dtype, std::move(found.shape), kNoExtent, std::move(found.descr)};
  if (found.parts.empty()) return tensor;
  if (found.strides != c_strides(tensor.shape)) tensor.strides = std::move(found.strides);
  for (const TensorPart& part : found.parts) tensor.runs.push_back(place_part(part, files, cuts));
  const TensorRun& first = tensor.runs.front();
  const bool whole = first.length == cuts[first.file][first.extent].length;
  if (tensor.runs.size() > 1 || !tensor.strides.empty() || first.file != files.front() || !whole) return tensor;
  tensor.extent = first.extent;
  std::vector<TensorRun>().swap(tensor.runs);  // there may be millions: clear() would keep its memory
  return tensor;
}

}  // namespace weft
