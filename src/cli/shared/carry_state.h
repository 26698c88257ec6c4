// Whether the files below a directory have changed, without reading them.
#pragma once

#include <cstdint>
#include <string>

#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// Equal states mean equal files, unless somebody sets times back. Times of directories do not count: files that a
// program makes and removes leave no trace.
struct DirectoryState {
  std::uint64_t files = 0;
  Digest digest;  // of names, kinds, sizes, inodes and times
  bool operator==(const DirectoryState&) const = default;
};
// Entries that vanish meanwhile are left out.
Result<DirectoryState> state_of_directory(const std::string& path);

}  // namespace weft
