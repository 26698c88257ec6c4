// Packs whose bytes may be in the page cache alone: those of versions that were published into memory (Viper, ICPP
// 2024: a checkpoint is served before it reaches a disk). The .toc of such a pack, which is durable, names the boot of
// the machine under which it was written. While that boot lasts the pack is as good as any: a process that dies takes
// no page with it. Under another boot nobody reads the pack (Errc::absent) until it was judged.
#pragma once

#include <vector>

#include "packs/packs.h"
#include "weft/publish.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

Result<bool> is_unsynced(const PackDir& packs, PackId pack);

// Makes it an ordinary pack, and returns what it has lost: nothing if its bytes are of this boot, which are written to
// the disk in pieces, so that other syncs wait for one piece at most; else the blobs whose bytes, read and hashed, are
// others. Its .toc lists these no more. Fine when it is ordinary already, or gone.
// One caller at a time for a pack; gc leaves such packs alone.
Result<std::vector<PackEntry>> settle_pack(const PackDir& packs, PackId pack, const FlushPace& pace);

}  // namespace weft
