// Open files of the mounted tree: bytes in memory, then blobs, one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "blobs/open_blobs.h"
#include "reading/prefetch.h"
#include "weft/pack.h"
#include "weft/store.h"
#include "weft/vfs.h"

namespace weft {

// Who reads ahead in a file, and where its tensors begin, ascending. Nothing is read ahead where one of them is
// missing, but for a file of one tensor, where somebody reads on.
struct ReadAhead {
  Prefetcher* prefetcher = nullptr;  // outlives the file
  std::vector<std::uint64_t> borders;
  bool one_tensor = false;  // no borders then
};

// The file `head` ‖ blob 0 ‖ blob 1 ‖ …; none of the blobs is empty. `where` starts messages. What it needs it keeps:
// neither the store's index nor the version is asked again.
Result<std::shared_ptr<OpenFile>> open_blobs(Store& store, std::string where, std::string head,
                                             std::span<const ContentId> blobs, const ReadAhead& ahead = {},
                                             Remembered known = {});

// A file that is all of one pack.
std::shared_ptr<OpenFile> open_pack(std::string where, std::shared_ptr<const PackReader> pack, const ReadAhead& ahead);

std::shared_ptr<OpenFile> open_text(std::string text, ReadMode mode = ReadMode::cached);

}  // namespace weft
