// Making the index again from packs, manifests and journal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "store/env.h"
#include "store/journal.h"
#include "store/manifests.h"
#include "store/packs.h"
#include "store/tables.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// What a new index is made from, and how much of it.
struct RebuildInput {
  const Journal& journal;
  const Manifests& manifests;
  Packs& packs;
  const ContentDecoder& decode;
  std::uint64_t journal_end = UINT64_MAX;
  bool accept_loss = false;  // what the journal lost is settled rather than told as problems
  bool mend = false;         // tables of contents that are lost are made again, and written
  // Removed versions that are not reaped: those that somebody has open, or for fsck those of the index. Says of one
  // version always the same.
  std::function<bool(VersionId)> unreaped;
  // fsck, to get what is there: the keys and places that blobs have.
  std::function<std::optional<FoundBlob>(const ContentId&)> known;
  std::string node = {};  // uuid of this one, of a store in a cluster
};

struct RebuildOutcome {
  std::uint64_t journal_end = 0;      // of what is whole
  std::optional<RepairEvent> repair;  // the journal has lost something; with accept_loss the index goes by this
};

// Fills an empty index. What is damaged gets a line in the report and is left out; an error is a failure to write.
Result<RebuildOutcome> fill_index(Env& env, const RebuildInput& input, Progress& progress, FsckReport& report);

// The blobs of all packs, dead until somebody holds them; `wanted` gives what versions need, for tables of contents
// that are lost.
Status index_packs(Env& env, const WriterLock& lock, const RebuildInput& input,
                   const std::function<Result<std::vector<ContentId>>()>& wanted, Progress& progress,
                   FsckReport& report);

// As Store::rebuild.
Result<FsckReport> rebuild_store(const std::string& path, const ContentDecoder& decode, const RebuildOptions& options,
                                 Progress& progress);

// index/gc: gc and rebuild hold it exclusively, fsck shared. Taken before the writer lock.
Result<Fd> lock_collector(const std::string& store_path, LockKind kind, const Patience& patience);

// A line of a report, of what Placing::finish() has put there.
std::string placed_again(const std::string& file);

// What cannot be read or applied is a problem of the store, and gets a line; what cannot be written is ours: returned.
Status tell(FsckReport& report, Status status, const std::string& what);

}  // namespace weft
