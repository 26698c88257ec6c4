// The layout of a data set's small files in bundles, and of bundles in segments, which are the extents. It follows from
// the file table alone, so that readers and publishers agree.
#pragma once

#include <cstdint>
#include <vector>

#include "dataset/file_table.h"
#include "weft/content.h"
#include "weft/model/manifest.h"

namespace weft {

inline constexpr std::uint64_t kSegmentMin = 1U << 20U;
inline constexpr std::uint64_t kBundleMax = 32U << 20U;

struct Bundle {
  std::uint64_t first_file = 0, files = 0;  // in the table; final empty files may be in no bundle
  std::uint64_t bytes = 0;
  std::vector<Range> segments;  // from the bundle's start; none empty
};

// Plans the bundles of a file table. A segment ends where a file begins: at the end of a directory, and at files chosen
// by their names and sizes. So a data set that gained or lost files shares the segments before and after them with its
// previous version.
std::vector<Bundle> plan_bundles(const FileTable& table);

}  // namespace weft
