// What of a published file has to be fetched, in pieces of which none moves a byte of a blob that nobody asked for.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "weft/manifest.h"
#include "weft/source.h"

namespace weft {

// Chunks of one blob that follow each other, or all of a small one.
struct FetchUnit {
  std::uint64_t offset = 0;  // of the file
  std::uint64_t length = 0;
  std::size_t blob = 0;  // number in FetchPlan::blobs
  ChunkRun run;
};

struct FetchPlan {
  std::vector<Extent> blobs;     // each once, where it is first in the file; by offset
  std::vector<FetchUnit> units;  // by offset; together they are the blobs
};

// Of the extents `absent`, by offset. No unit is longer than `unit_max`, a multiple of kDigestChunk.
FetchPlan plan_fetch(std::span<const Extent> absent, std::uint64_t unit_max);

// The numbers of the units that overlap a range of the file: [first, second).
std::pair<std::size_t, std::size_t> units_in(const FetchPlan& plan, Range range);

}  // namespace weft
