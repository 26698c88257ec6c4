// Unsynced packs: packs of versions that were published into memory, whose bytes may be only in the page cache (Viper,
// ICPP 2024: a checkpoint is served before it reaches a disk). The .toc of such a pack is durable and names the boot
// under which the pack was written. During that boot the pack is as good as any other, since pages survive the death of
// a process. Under a later boot, reads fail with Errc::absent until flush_pack() has verified the pack.
#pragma once

#include <functional>
#include <span>

#include "packs/packs.h"
#include "weft/result.h"
#include "weft/store/publish.h"
#include "weft/store_rows.h"

namespace weft {

Result<bool> is_unsynced(const PackDir& packs, PackId pack);

// Turns an unsynced pack into an ordinary one. Bytes of this boot are written to the disk in pieces, so that other
// syncs wait for at most one piece. Bytes of an earlier boot are read and hashed: damaged blobs are lost, and removed
// from the .toc. `forget` removes them from the index before that, while reads of the pack still fail. Otherwise a
// reader that found the blob in an older state of the index would read wrong bytes. No effect if the pack is ordinary
// or gone. One caller per pack at a time; gc does not rewrite unsynced packs.
using ForgetLost = std::function<Status(std::span<const PackEntry>)>;
Status flush_pack(const PackDir& packs, PackId pack, const FlushPace& pace, const ForgetLost& forget);

}  // namespace weft
