// Recovers the manifests of one pack, of which the store has two copies: the .pack and the .copy. The table of contents
// is believed first. Then both copies are searched for records that it does not list. Nothing is written before
// repair_manifests().
#pragma once

#include <vector>

#include "diskformat/toc.h"
#include "packs/packs.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

struct FoundManifests {
  PackToc toc;                    // the stored entries, and the manifests that only the search has found
  bool lists_more = false;        // `toc` is not what is stored
  std::vector<PackEntry> whole;   // entries whose manifest at least one copy has
  std::vector<PackEntry> broken;  // those of `whole` whose record one copy lacks
  bool is_damaged() const { return lists_more || !broken.empty(); }
};

// Errors of the disk count as damage of that copy. Errc::cancelled.
Result<FoundManifests> find_manifests(const PackDir& packs, PackId pack, const Progress& progress);
// Writes each broken record again, from the other copy. Changes no whole record, and creates a copy that is gone. The
// caller syncs the directory.
Status repair_manifests(const PackDir& packs, const FoundManifests& found);

}  // namespace weft
