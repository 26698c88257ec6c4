// Cuts files into extents: the runs of tensors, and the skeleton bytes between them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/content.h"
#include "weft/model/format.h"
#include "weft/model/manifest.h"

namespace weft {

// Returns the ranges of a file of `size` bytes: in order, touching, covering the file, none empty. Each run is in one
// range: overlapping runs, such as those of tied tensors, share a range. The parts of `cuts` (Layout::cuts) outside of
// the runs are ranges too, if they have limits::kCutMin bytes; overlapping cuts are one. Errc::internal: a run or a cut
// leaves the file.
Result<std::vector<Range>> cut_file(std::uint64_t size, std::vector<Range> runs, std::vector<Range> cuts = {});

// Numbers of the published files that hold the parts of a layout: the main file, then Layout::others.
using PartFiles = std::vector<std::uint32_t>;

// Adds the runs of a tensor, for cut_file(), to those of the files that its parts lie in. Parts that touch in a file
// are one run, in whatever order the memory has them: the chunks of an array then take one extent, not thousands. Such
// an extent has no bytes of another tensor, so an equal tensor that is stored alike shares it. The extent is at most as
// long as the tensor's memory, like the extent of any other tensor.
void add_runs(const FoundTensor& tensor, const PartFiles& files, std::span<std::vector<Range>> runs);

// Returns the tensor for a manifest. The parts of `found` lie in runs that `cuts`, by file, were made for.
Tensor place_tensor(FoundTensor found, const PartFiles& files, std::span<const std::vector<Range>> cuts);

}  // namespace weft
