#include "publish/cut.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "base/limits.h"
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

// Returns the parts of the cuts that no run covers and that have limits::kCutMin bytes. Both lists are sorted, without
// overlaps.
std::vector<Range> outside(const std::vector<Range>& cuts, const std::vector<Range>& runs) {
  std::vector<Range> out;
  const auto add = [&out](std::uint64_t begin, std::uint64_t end) {
    if (begin < end && end - begin >= limits::kCutMin) out.push_back({begin, end - begin});
  };
  auto run = runs.begin();
  for (const Range& cut : cuts) {
    std::uint64_t begin = cut.offset;
    for (; run != runs.end() && run->offset < end_of(cut); ++run) {
      add(begin, run->offset);
      begin = std::max(begin, end_of(*run));
      if (begin > end_of(cut)) break;  // the run may cover a part of the next cut too
    }
    add(begin, end_of(cut));
  }
  return out;
}

Status check_inside(const std::vector<Range>& runs, std::uint64_t size) {
  for (const Range& run : runs)
    if (run.length == 0 || run.offset > size || run.length > size - run.offset)
      return Error{Errc::internal,
                   fmt::format("expected tensors within {} bytes, got {} bytes at {}", size, run.length, run.offset)};
  return {};
}

TensorRun place_part(const TensorPart& part, const PartFiles& files, std::span<const std::vector<Range>> cuts) {
  const std::uint32_t file = files[part.file];
  const auto range = run_at(cuts[file], part.offset);
  return {file, static_cast<std::uint32_t>(range - cuts[file].begin()), part.offset - range->offset, part.length};
}

}  // namespace

void add_runs(const FoundTensor& tensor, const PartFiles& files, std::span<std::vector<Range>> runs) {
  std::vector<std::pair<std::uint32_t, Range>> parts;
  parts.reserve(tensor.parts.size());
  for (const TensorPart& part : tensor.parts) parts.emplace_back(files[part.file], Range{part.offset, part.length});
  std::ranges::sort(parts);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [file, run] = parts[i];
    if (i > 0 && parts[i - 1].first == file)
      append_run(runs[file], run);
    else
      runs[file].push_back(run);
  }
}

Result<std::vector<Range>> cut_file(std::uint64_t size, std::vector<Range> runs, std::vector<Range> cuts) {
  WEFT_CHECK(check_inside(runs, size));
  WEFT_CHECK(check_inside(cuts, size));
  std::vector<Range> pieces = united(std::move(runs));
  if (!cuts.empty()) {
    std::ranges::copy(outside(united(std::move(cuts)), pieces), std::back_inserter(pieces));
    std::ranges::sort(pieces);
  }
  std::vector<Range> ranges;
  std::uint64_t end = 0;  // end of the last range
  for (const Range& piece : pieces) {
    if (piece.offset > end) ranges.push_back({end, piece.offset - end});
    ranges.push_back(piece);
    end = end_of(piece);
  }
  if (end < size) ranges.push_back({end, size - end});
  return ranges;
}

Tensor place_tensor(FoundTensor found, const PartFiles& files, std::span<const std::vector<Range>> cuts) {
  Tensor tensor{std::move(found.name), found.dtype, std::move(found.shape), kNoExtent, std::move(found.descr)};
  if (found.parts.empty()) return tensor;
  if (found.strides != c_strides(tensor.shape)) tensor.strides = std::move(found.strides);
  tensor.grid = std::move(found.grid);
  for (const TensorPart& part : found.parts) append_run(tensor.runs, place_part(part, files, cuts));
  const TensorRun& first = tensor.runs.front();
  const bool whole = first.length == cuts[first.file][first.extent].length;
  const bool plain = tensor.strides.empty() && tensor.grid.empty();
  if (tensor.runs.size() > 1 || !plain || first.file != files.front() || !whole) return tensor;
  tensor.extent = first.extent;
  std::vector<TensorRun>().swap(tensor.runs);  // there may be millions: clear() would keep its memory
  return tensor;
}

}  // namespace weft
