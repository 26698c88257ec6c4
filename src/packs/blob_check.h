// Reads blobs and compares them with the .toc of their pack.
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

class PackWriter;

using BlobSink = std::function<Status(std::uint64_t offset_in_blob, std::span<const std::byte> bytes)>;

// Reads a whole blob on this thread and verifies its chunk digests and their root. Each piece goes to `sink`, if any,
// after its own digest was verified. Errc::corrupt, Errc::cancelled.
Status check_blob(int fd, std::string_view where, const PackEntry& entry, const Progress& progress,
                  const BlobSink& sink = {});

// Copies a blob to offset `at` of a pack, and hashes the bytes in the buffer from which they are written. Returns its
// entry, which the caller must check by root_agrees(). Errc::cancelled.
Result<PackEntry> copy_hashed(const ContentId& id, int fd, std::uint64_t offset, std::string_view where,
                              PackWriter& pack, std::uint64_t at, const Progress& progress);

// True if the entry's chunk digests give the root in its id.
bool root_agrees(const PackEntry& entry);

// Returns the hint of a blob (index/blobs.h): XXH3-64 of its first MiB. 0 if the blob is no longer than that or cannot
// be read.
std::uint64_t hint_of(int fd, std::uint64_t offset, std::uint64_t length);

}  // namespace weft
