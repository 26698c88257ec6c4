// Reading blobs back and comparing them with what their pack's .toc says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "store/packs.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

using BlobSink = std::function<Status(std::uint64_t offset_in_blob, std::span<const std::byte> bytes)>;

// Reads all of a blob on this thread: XXH3-128, and where the entry has them the chunk digests and their root. Each
// piece goes to `sink`, if any, when its own digest has been checked. Errc::corrupt, Errc::cancelled.
Status check_blob(int fd, std::string_view where, const PackEntry& entry, const Progress& progress,
                  const BlobSink& sink = {});

// Does the entry's list of chunk digests give the root it claims? True for one without digests.
bool root_agrees(const PackEntry& entry);

}  // namespace weft
