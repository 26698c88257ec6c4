// What gc remembers, so that it does not walk all packs: those that it has to look at, and the dead bytes of those that
// it looked at and left. A pack is queued when it comes, and when something of it dies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "diskformat/pack_look.h"
#include "index/env.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

Status queue_pack(Txn& txn, PackId pack);  // pack 0: nothing
// The first that are not below `from`, in order.
Result<std::vector<NotedPack>> queued_packs(Txn& txn, PackId from, std::size_t count_max);
Result<std::vector<NotedPack>> packs_left_dead(Txn& txn, PackId from, std::size_t count_max);
Status take_look(Txn& txn, const PackLook& look);

// Whether gc has looked at all packs since the machine booted, as it does when a process may have died and left some
// that the index does not know. `boot`: a hash of the boot's id; 0: unknown.
Result<bool> has_walked(Txn& txn, std::uint64_t boot);
Status note_walked(Txn& txn, std::uint64_t boot);  // 0: it has not

}  // namespace weft
