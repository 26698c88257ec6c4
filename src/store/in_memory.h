// What of a version's content is not on a disk yet, or nowhere.
#pragma once

#include <map>
#include <set>

#include "index/tables.h"
#include "packs/packs.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

class MemoryUse {
 public:
  explicit MemoryUse(const PackDir& packs) : packs_(packs) {}

  // A blob of this version. If it is not here, older live versions may have it.
  Status see(Txn& txn, const ContentId& id, VersionId version);

  const std::set<PackId>& unsynced() const { return unsynced_; }  // packs here that are not on the disk
  bool waits() const { return waits_; }  // some is not here, and with versions that are in memory themselves
  bool lost() const { return lost_; }    // some is not here, and no other version has it

 private:
  Status see(PackId pack);

  const PackDir& packs_;
  std::map<PackId, bool> seen_;
  std::set<PackId> unsynced_;
  bool waits_ = false;
  bool lost_ = false;
};

}  // namespace weft
