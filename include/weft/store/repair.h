// Finds the published files that a damaged blob belongs to, and other copies of its bytes (origin/repair.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/fsck.h"
#include "weft/store/store.h"

namespace weft {

// A published file of a live version that has damaged bytes.
struct AffectedFile {
  std::string model;
  std::uint64_t number = 0;
  std::string path;
  std::vector<std::string> tensors;  // the first few; none if only bytes between tensors are damaged
  std::uint64_t more_tensors = 0;

  std::string text() const;  // "org/m@3 model.safetensors (tensor x)"
};
struct AffectedFiles {
  std::vector<AffectedFile> files;  // by model, number and path
  std::uint64_t more = 0;           // files beyond `count_max`
};
// Returns the files that contain these blobs. Leaves out a version whose manifest is not local or cannot be read; fsck
// names it.
Result<AffectedFiles> affected_files(Store& store, std::span<const DamagedBlob> blobs, std::size_t count_max);

// Verifies and takes a blob from `fd` at `offset`. Errc::corrupt, Errc::io: this is not the blob; other errors end the
// search.
using TakeBlob = std::function<Status(const ContentId& id, int fd, std::uint64_t offset, std::string_view where)>;

// Searches each PATH for the blobs and offers possible copies to `take`. A PATH is a store, an origin, a published
// file, or a directory with published files below it; a file counts as published if it has the size of one. Returns the
// blobs that were not found. Errc::not_found: a PATH does not exist.
Result<std::vector<DamagedBlob>> search_blobs(Store& store, std::vector<DamagedBlob> blobs,
                                              std::span<const std::string> paths, const TakeBlob& take,
                                              Progress& progress);

}  // namespace weft
