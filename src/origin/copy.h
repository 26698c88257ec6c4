// Copies of packs on their way to an origin, or from there.
#pragma once

#include <string>
#include <vector>

#include "diskformat/toc.h"
#include "os/safe_path.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// Makes `path`, a new file of toc.size bytes that has the blobs of `toc` where they lie in `pack`, and holes between;
// synced. What is read is checked against the digests in `toc`, those against the blobs' roots: Errc::corrupt. With
// `damaged` such a blob, or one that cannot be read, is listed there, and the others go on: nobody may believe the copy
// of it. Errc::cancelled. Memory: some MiB.
Status copy_pack(const PackToc& toc, int pack, const SafePath& path, Progress& progress,
                 std::vector<ContentId>* damaged = nullptr);

// This blob as a pack's table of contents lists it, from the bytes at `offset`. Errc::corrupt: they are another's.
Result<PackEntry> hash_blob(int pack, const ContentId& id, std::uint64_t offset, const Progress& progress);

}  // namespace weft
