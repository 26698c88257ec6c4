// Reading blobs back and comparing them with what their pack's .toc says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "diskformat/toc.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

using BlobSink = std::function<Status(std::uint64_t offset_in_blob, std::span<const std::byte> bytes)>;

// Reads all of a blob on this thread and checks its chunk digests and their root. Each piece goes to `sink`, if any,
// when its own digest has been checked. Errc::corrupt, Errc::cancelled.
Status check_blob(int fd, std::string_view where, const PackEntry& entry, const Progress& progress,
                  const BlobSink& sink = {});

// Whether the entry's chunk digests give the root that it claims.
bool root_agrees(const PackEntry& entry);

// XXH3-64 of the first MiB of a larger blob (tables.h); 0 for a smaller one, and when it cannot be read.
std::uint64_t hint_of(int fd, std::uint64_t offset, std::uint64_t length);

}  // namespace weft
