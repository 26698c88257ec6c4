// Promotion: a publish turns cached packs into packs of this node. If the publish fails, they become cached again.
#pragma once

#include <set>

#include "index/env.h"
#include "store/parts/parts.h"
#include "store/parts/reliances.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Any thread.
Status promote(StoreParts& parts, const WriterLock& lock, const Promotion& promotion);
Status make_cached(StoreParts& parts, const WriterLock& lock, const std::set<PackId>& packs);
// Ends the promotion of a failed publish. Packs that a later publish relies on stay promoted; gc decides about them.
void undo_promotion(StoreParts& parts, const Promotion& promotion);
// Ends the promotion of a publish that the registry may have accepted. If the index lacks the version, its packs stay
// relied on for a while.
void end_promotion(StoreParts& parts, const Promotion& promotion);
// For gc. Makes promoted packs cached again if their publish died before the registry decided, or their versions are
// gone. `walk`: looks at all packs, not only at those that the index has noted.
Status undo_unneeded_promotions(StoreParts& parts, bool walk);

}  // namespace weft
