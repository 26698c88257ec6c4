// A collection frees the packs and manifests of an origin that no version needs. It runs beside publishes, stage-outs,
// reads, undeletes and other collections of all nodes, and may be stopped at any point. The registry orders them: no
// step compares clocks of two nodes, waits for a time, or holds a lock.
//
//   1. Reads the journal, then the registry. If the journal has a live version that the registry does not know, the
//      registry has lost history: nothing is freed.
//   2. Finds the dead files: packs without a blob, and manifests, of a version that needs its content. Those are the
//      live versions and the ones that were removed after the horizon, the present time less the grace period.
//      A pack with needed blobs to which no places lead, or will, is an orphan: a copy that a collection has left when
//      it was stopped. If there are dead packs, steps 3 to 5 run for them alone first, so that copies have space.
//   3. Copies the needed blobs of packs that are partly dead (rewrite.h). Writes the names of all these files to a new
//      list, freed/<sequence>. The list repeats the names of earlier lists.
//   4. The registry announces the sequence and the horizon. Places lead to the copies now.
//   5. Reads the registry again, and deletes the listed files that no version needs now. Rewritten packs, orphans,
//      and the former names of their manifests, stay for the grace period, because readers may use them. Orphans stay
//      for a later collection in any case.
//
// Stage-outs. A node stages a version after its mirror shows the version's publish. If the announcement came before the
// publish, the node knows the announcement, and does not write before it has read the list. It relies on no listed
// file: it copies blobs of a listed pack into another pack, and gives a listed manifest a new name. If the publish came
// first, step 5 sees the version, and all packs that have its blobs stay. So a decision to delete a file holds for
// ever: it does not matter how late a collection that was stopped goes on. Pack ids and names of manifests that were
// freed are never used again.
//
// Undeletes. An undelete that takes its content from the origin is one transaction, which fails if the version was
// removed before the announced horizon, or if an announcement came after the content was looked up.
//
// The journal stays whole: the names of removed versions must outlive their content, so that no number is used twice.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "origin/dir.h"
#include "weft/cluster/origin.h"
#include "weft/cluster/registry.h"
#include "weft/content.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// The registry's part of a collection (origin/collect_order.cc).
class CollectionOrder {
 public:
  virtual ~CollectionOrder() = default;
  // Returns all versions, removed ones too, of a state of the registry that is not older than the call.
  virtual Result<std::vector<VersionRow>> versions() = 0;
  // Returns the manifest of a version that is not at the origin. Errc::absent, Errc::not_found: it is out of reach.
  virtual Result<std::vector<std::byte>> manifest(const VersionRow& row) = 0;
  // True unless the version was removed since its row was read.
  virtual Result<bool> is_live(const VersionRow& row) = 0;
  // As Registry::origin_collection() and announce().
  virtual OriginCollection latest() = 0;
  virtual Status announce(const OriginCollection& next) = 0;
};

struct OriginGcOptions {
  std::uint64_t horizon_ns = 0;  // versions that were removed until then need no content
  // These versions, which are removed, need none whenever they were removed.
  std::vector<PurgedVersion> purged = {};
  bool dry_run = false;
  bool all = false;              // rewrites every pack that has dead bytes, however few
  std::uint64_t reading_ns = 0;  // how long readers may use a rewritten pack, by the origin's clock
  // The blobs of purged versions. The collection rewrites every pack that has dead bytes and one of these blobs. The
  // report leaves out the dead bytes of other packs. Other packs that were rewritten before stay for readers.
  std::optional<std::set<ContentId>> blobs = {};
};

// Errc::busy: a live version has neither its places nor its manifest in reach, so its blobs are not known.
// Errc::changed: the registry has lost history. Errc::cancelled: what was freed stays freed. Calls may hang in the
// origin's file system. Memory: 8 bytes for each blob that a version needs.
Result<OriginGcReport> collect_origin(OriginDir origin, CollectionOrder& order, const OriginGcOptions& options,
                                      Progress& progress);

}  // namespace weft
