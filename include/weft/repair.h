// Which published files a damaged blob belongs to, and where its bytes can be had again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/fsck.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// A published file of a live version that has damaged bytes.
struct AffectedFile {
  std::string model;
  std::uint64_t number = 0;
  std::string path;
  std::vector<std::string> tensors;  // the first of them; none if only bytes between tensors are damaged
  std::uint64_t more_tensors = 0;

  std::string text() const;  // "org/m@3 model.safetensors (tensor x)"
};
struct AffectedFiles {
  std::vector<AffectedFile> files;  // by model, number and path
  std::uint64_t more = 0;           // files that are left out
};
// The files that contain these blobs. A version whose manifest is not here, or cannot be read, is left out: fsck names
// it.
Result<AffectedFiles> affected_files(Store& store, std::span<const DamagedBlob> blobs, std::size_t count_max);

// Takes a blob from `fd` at `offset` and verifies it. Errc::corrupt, Errc::io: it is not there; other errors end the
// search.
using TakeBlob = std::function<Status(const ContentId& id, int fd, std::uint64_t offset, std::string_view where)>;

// Searches each PATH for the blobs and offers what may be them. A PATH is a store, an origin, a published file, or a
// directory that has published files below it; a file is taken for a published one if it has its size. Returns the
// blobs that were found nowhere. Errc::not_found: a PATH is not there.
Result<std::vector<DamagedBlob>> search_blobs(Store& store, std::vector<DamagedBlob> blobs,
                                              std::span<const std::string> paths, const TakeBlob& take,
                                              Progress& progress);

}  // namespace weft
