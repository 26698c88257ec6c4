// Making the index again from packs, manifests and journal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "catalog/journal.h"
#include "index/env.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "repair/rebuild_input.h"
#include "repair/rebuild_packs.h"
#include "repair/replay.h"
#include "repair/survey.h"
#include "weft/fsck.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/version_content.h"

namespace weft {

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
// error, for example of an open that failed for want of descriptors, ends it. One thread. It has the index to itself.
class Rebuilder {
 public:
  static Result<std::unique_ptr<Rebuilder>> begin(Env& env, const RebuildInput& input, Progress& progress,
                                                  FsckReport& report);
  Result<RebuildOutcome> fill();
  // After fill(), for fsck: replays what the journal has had since then, up to `journal_end`.
  Status follow(std::uint64_t journal_end);
  std::uint64_t journal_end() const { return end_; }  // of what is replayed

 private:
  Rebuilder(Env& env, WriterLock lock, const RebuildInput& input, Progress& progress, FsckReport& report,
            const std::optional<Counters>& mark);
  Result<JournalState> survey();
  Result<WantedExtents> wanted() const;
  Status replay_all();
  Status fill_gaps();
  Status drop_unneeded_manifests();
  Status finish();

  Env& env_;
  const WriterLock lock_;
  const RebuildInput& input_;
  Progress& progress_;
  FsckReport& report_;
  const std::optional<Counters> mark_;
  JournalSurvey survey_;
  JournalReplay replay_;
  std::uint64_t end_ = 0;
};

// As Store::rebuild.
Result<FsckReport> rebuild_store(const SafePath& path, const ContentDecoder& decode, const RebuildOptions& options,
                                 Progress& progress);

// index/gc: gc and rebuild hold it exclusively, fsck shared. Taken before the writer lock.
Result<Fd> lock_collector(const SafePath& store_path, LockKind kind, const Patience& patience);

}  // namespace weft
