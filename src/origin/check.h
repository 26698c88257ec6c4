// Verifies all files of an origin: records of the journal, manifests, places, and all bytes of packs by their digests.
// Repairs damaged and missing ones in place, from content that is verified too: a manifest, a record of the journal or
// a blob comes from this node or from another one; places and tables of contents are computed again. It runs beside
// writers and collections, which never delete what it repairs: files that a live version needs.
#pragma once

#include <cstdint>

#include "origin/collect.h"
#include "origin/dir.h"
#include "weft/bytes/pack.h"
#include "weft/cluster/origin.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

// The content of the cluster's nodes, for repairs.
class RepairSource {
 public:
  virtual ~RepairSource() = default;
  // Opens a blob, whose bytes need not be whole. `damaged`: the bytes of the last call were not.
  virtual Result<OpenPlace> blob(const ContentId& id, bool damaged, Progress& progress) = 0;
  // As OriginLedger::events().
  virtual Result<CatalogEvents> events(std::uint64_t from) = 0;
};

// `source`: null to repair nothing. Errc::cancelled: what was repaired stays repaired. Calls may hang in the origin's
// file system. Memory: about 60 bytes for each blob of a live version.
Result<OriginFsckReport> check_origin_files(OriginDir origin, CollectionOrder& order, RepairSource* source,
                                            Progress& progress);

}  // namespace weft
