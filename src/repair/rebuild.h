// Rebuilds the index from packs, manifests and journal.
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
#include "weft/model/version_content.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/fsck.h"

namespace weft {

struct RebuildOutcome {
  std::uint64_t journal_end = 0;      // end of the last readable record
  std::optional<RepairEvent> repair;  // set if the journal has lost records; replayed only with accept_loss
  FoundPacks packs;
  std::uint64_t missing = 0;  // extents that versions need and no pack has
  // True if the rebuild would lose data: records of the journal, or missing extents that may be in a pack that has lost
  // its table of contents.
  bool loses() const { return repair.has_value() || (missing != 0 && !packs.remade.empty()); }
};

// Fills an empty index and changes nothing else. Damaged input gets a line in the report and is left out. Any other
// error, such as a lack of file descriptors, ends the rebuild. One thread, with exclusive use of the index.
class Rebuilder {
 public:
  static Result<std::unique_ptr<Rebuilder>> begin(Env& env, const RebuildInput& input, Progress& progress,
                                                  FsckReport& report);
  Result<RebuildOutcome> fill();
  // For fsck, after fill(): replays the later records of the journal, up to `journal_end`.
  Status follow(std::uint64_t journal_end);
  std::uint64_t journal_end() const { return end_; }  // end of the replayed records

 private:
  Rebuilder(Env& env, WriterLock lock, const RebuildInput& input, Progress& progress, FsckReport& report,
            const std::optional<Counters>& mark);
  Result<JournalState> survey();
  Result<WantedExtents> wanted() const;
  Status replay_all();
  Status change_pages(const std::function<Result<std::string>(Txn&, std::string_view)>& change);
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

// Implements Store::rebuild.
Result<FsckReport> rebuild_store(const SafePath& path, const ContentDecoder& decode, const RebuildOptions& options,
                                 Progress& progress);

// Locks index/gc. gc and rebuild hold it exclusively, fsck shared. Lock it before the writer lock.
Result<Fd> lock_collector(const SafePath& store_path, LockKind kind, const Patience& patience);

}  // namespace weft
