// Copies packs to an origin and from one.
#pragma once

#include <vector>

#include "diskformat/toc.h"
#include "os/safe_path.h"
#include "pace/pace_gate.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// Writes and syncs `path`, a new file of toc.size bytes with the blobs of `toc` at their offsets in `pack` and holes
// between them. Verifies the bytes against the chunk digests in `toc`, and these against the blob's root:
// Errc::corrupt. With `damaged`, a blob that is corrupt or unreadable is added to that list instead and the copy
// continues; the blob's bytes in the copy are not valid. Errc::cancelled. Memory: some MiB. `gate` paces the writes, as
// staging to the origin; null: nothing does.
Status copy_pack(const PackToc& toc, int pack, const SafePath& path, Progress& progress,
                 std::vector<ContentId>* damaged = nullptr, PaceGate* gate = nullptr);

// Returns the entry of this blob for a table of contents, computed from the bytes at `offset`. Errc::corrupt: the bytes
// are not this blob's.
Result<PackEntry> hash_blob(int pack, const ContentId& id, std::uint64_t offset, const Progress& progress);

}  // namespace weft
