// Turns files on this node that have the bytes of published ones into packs of the cache, without a copy.
#pragma once

#include <cstdint>

#include "fetch/fetcher.h"
#include "os/safe_path.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store_rows.h"

namespace weft {

// Smaller files are fetched when they are read: each pack costs two syncs.
inline constexpr std::uint64_t kAdoptedFileMin = 8U << 20U;

// Takes from `files`, a directory below the store, the files whose paths and sizes are those of published files of the
// version and that have blobs this node lacks. A file may lack bytes: these stay absent, and so do blobs whose bytes
// are wrong. Returns the number of bytes that became local. The caller guarantees that no process can write to the
// files. Errc::cancelled: the files that were taken so far stay in the cache.
Result<std::uint64_t> adopt_files(Store& store, FetchedCache& cache, Fetcher& fetcher, const VersionRow& row,
                                  const SafePath& files, Progress& progress);

}  // namespace weft
