// Promotion: a publish turns cached packs into packs of this node. If the publish fails, they become cached again.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <vector>

#include "index/env.h"
#include "store/parts/parts.h"
#include "store/parts/reliances.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// The versions and packs that a version's content relies on, in one state of the index.
struct Reliance {
  std::vector<VersionName> versions;  // live holders of blobs that have no local pack
  std::set<PackId> held;              // local packs
  std::set<PackId> cached;            // those of `held` that are cached
};
// `holds` says which packs stay. Errc::invalid: a blob is in no such pack, and no live version holds it.
Result<Reliance> reliance_of(Txn& txn, std::span<const ContentId> blobs, const std::function<bool(PackId)>& holds);

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
