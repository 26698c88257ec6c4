// Packs whose bytes may be in the page cache alone: those of versions that were published into memory (Viper, ICPP
// 2024: a checkpoint is served before it reaches a disk). The .toc of such a pack, which is durable, names the boot of
// the machine under which it was written. While that boot lasts the pack is as good as any: a process that dies takes
// no page with it. Under another boot nobody reads the pack (Errc::absent) until it was judged.
#pragma once

#include <functional>
#include <span>

#include "packs/packs.h"
#include "weft/publish.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

Result<bool> is_unsynced(const PackDir& packs, PackId pack);

// Makes it an ordinary pack. Bytes of this boot are written to the disk in pieces, so that other syncs wait for one
// piece at most. Bytes of another boot are read and hashed: the blobs that have other bytes are lost, and the .toc
// lists them no more. `forget` takes them out of the index first, while nobody reads the pack: a reader who found one
// in the index of before would have the wrong bytes. Fine when the pack is ordinary already, or gone. One caller at a
// time for a pack; gc leaves such packs alone.
using ForgetLost = std::function<Status(std::span<const PackEntry>)>;
Status settle_pack(const PackDir& packs, PackId pack, const FlushPace& pace, const ForgetLost& forget);

}  // namespace weft
