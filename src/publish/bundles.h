// How the small files of a data set lie in bundles, and bundles in segments, which are the extents. It follows from the
// file table alone, so that who reads the files and who stores them agree.
#pragma once

#include <cstdint>
#include <vector>

#include "dataset/file_table.h"
#include "weft/content.h"
#include "weft/manifest.h"

namespace weft {

inline constexpr std::uint64_t kSegmentMin = 1U << 20U;
inline constexpr std::uint64_t kBundleMax = 32U << 20U;

struct Bundle {
  std::uint64_t first_file = 0, files = 0;  // of the table; files without bytes behind the last one are in none
  std::uint64_t bytes = 0;
  std::vector<Range> segments;  // from the bundle's start; none empty
};

// A segment ends where a file begins: at the end of a directory, and at files that their names and sizes choose, so
// that a data set that gained or lost files shares the segments before and after them with the former one.
std::vector<Bundle> plan_bundles(const FileTable& table);

}  // namespace weft
