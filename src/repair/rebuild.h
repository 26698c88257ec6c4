// Making the index again from packs, manifests and journal.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catalog/journal.h"
#include "catalog/manifests.h"
#include "diskformat/toc.h"
#include "index/blobs.h"
#include "index/env.h"
#include "index/tables.h"
#include "os/safe_path.h"
#include "packs/packs.h"
#include "repair/repair_pack.h"
#include "weft/content.h"
#include "weft/fsck.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"
#include "weft/version_content.h"

namespace weft {

// What a new index is made from, and how much of it.
struct RebuildInput {
  const Journal& journal;
  const Manifests& manifests;
  Packs& packs;
  const ContentDecoder& decode;
  std::uint64_t journal_end = UINT64_MAX;
  bool accept_loss = false;  // losses are accepted and reported as lost, not as problems
  bool mend = false;         // looks for what damaged packs and tables of contents should have
  bool data = false;         // with mend: reads all blobs that live versions need, to find what is damaged
  // Removed versions that are not reaped: those that somebody has open, or for fsck those of the index. Says of one
  // version always the same.
  std::function<bool(VersionId)> unreaped;
  // fsck, to get what is there: the places that blobs have.
  std::function<std::optional<FoundBlob>(const ContentId&)> known;
  // For packs whose table of contents is damaged or gone: the places in them that an older index names.
  std::function<Result<std::map<PackId, std::vector<PlacedBlob>>>(const std::set<PackId>&)> placed = {};
  std::string node = {};  // uuid of this one, of a store in a cluster
  // For fsck: how many steps of what an unreaped version held are given back (catalog/giving_back.h). Empty: all.
  std::function<std::uint64_t(VersionId)> given_back = {};
};

// What the search for blobs found. The index names it, and nothing of it is in place yet.
struct FoundPacks {
  std::vector<PackToc> remade;        // tables of contents that were damaged or gone
  std::unique_ptr<RepairPack> fresh;  // blobs that assembled files alone had whole; null if there are none
};

struct RebuildOutcome {
  std::uint64_t journal_end = 0;      // of what is whole
  std::optional<RepairEvent> repair;  // the journal has lost something; with accept_loss the index goes by this
  FoundPacks packs;
  std::uint64_t missing = 0;  // extents that versions need and no pack has
  // The rebuilt index would replace knowledge that it does not have: a pack that lost its table of contents may hold
  // the missing extents.
  bool loses() const { return repair.has_value() || (missing != 0 && !packs.remade.empty()); }
};

// Fills an empty index and changes nothing else. Damaged input gets a line in the report and is left out. Every other
// error, for example of an open that failed for want of descriptors, ends it.
Result<RebuildOutcome> fill_index(Env& env, const RebuildInput& input, Progress& progress, FsckReport& report);

// The content that versions need: of those whose bytes must be here, and of those of other nodes, which fetch it when
// it is read.
struct WantedExtents {
  std::vector<Extent> here, elsewhere;
};

// Indexes the blobs of all packs, dead until a version holds them.
Result<FoundPacks> index_packs(Env& env, const WriterLock& lock, const RebuildInput& input,
                               const std::function<Result<WantedExtents>()>& wanted, Progress& progress,
                               FsckReport& report);

// Whether stored bytes are damaged or gone. Any other error says only that they could not be read just now.
bool is_damage(const Error& error);

// As Store::rebuild.
Result<FsckReport> rebuild_store(const SafePath& path, const ContentDecoder& decode, const RebuildOptions& options,
                                 Progress& progress);

// index/gc: gc and rebuild hold it exclusively, fsck shared. Taken before the writer lock.
Result<Fd> lock_collector(const SafePath& store_path, LockKind kind, const Patience& patience);

// A record that cannot be applied is a problem of the store and gets a line. An error of the system is returned.
Status tell(FsckReport& report, Status status, const std::string& what);

}  // namespace weft
