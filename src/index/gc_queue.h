// gc's notes in the index, which spare it a walk of all packs: the packs to judge, and the dead bytes in packs that
// it left. A pack is queued when it is added, and when one of its blobs dies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "diskformat/pack_notes.h"
#include "index/env.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

Status queue_pack(Txn& txn, PackId pack);  // no effect for pack 0
// Return the first `count_max` packs with ids of at least `from`, in order.
Result<std::vector<NotedPack>> queued_packs(Txn& txn, PackId from, std::size_t count_max);
Result<std::vector<NotedPack>> packs_left_dead(Txn& txn, PackId from, std::size_t count_max);
Status note_verdict(Txn& txn, const PackVerdict& verdict);

// True if gc has judged all packs during this boot of the machine. A process that died may have left packs that the
// index does not know, and only such a walk finds them. `boot`: a hash of the boot id; 0: unknown, the result is false.
Result<bool> has_walked(Txn& txn, std::uint64_t boot);
Status note_walked(Txn& txn, std::uint64_t boot);  // 0: no walk was completed

}  // namespace weft
