// Finds the content of a version that is not on a disk, or is lost.
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

  // Adds a blob of this version. If the blob is not local, an older live version must have it.
  Status see(Txn& txn, const ContentId& id, VersionId version);

  const std::set<PackId>& unsynced() const { return unsynced_; }  // local packs that are not on the disk
  bool waits() const { return waits_; }  // a blob is not local, and the live versions that hold it are in memory only
  bool lost() const { return lost_; }    // a blob is not local, and no older live version holds it

 private:
  Status see(PackId pack);

  const PackDir& packs_;
  std::map<PackId, bool> seen_;
  std::set<PackId> unsynced_;
  bool waits_ = false;
  bool lost_ = false;
};

}  // namespace weft
