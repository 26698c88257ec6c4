// The units that wait for a worker: those that readers wait for, those of background fetches, by their class of
// traffic, and those that are copied from a base. Chooses the next ones in order, but skips units whose sources are
// busy.
//
// SameCopies compares a blob with its base once one unit of the blob has arrived. Of the units that are wanted ahead of
// readers, the first is queued or joins the swarm, and the blob's other units are held: they are in no queue. After the
// comparison, workers copy those that equal the base, and the others are queued or join the swarm. If the first unit
// fails, the next one takes its place.
//
// It has no thread and no lock: its owner guards it (FetchState), together with the transfers and the SwarmFetch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "fetch/fetch_sources.h"
#include "fetch/swarm_fetch.h"
#include "fetch/transfer.h"
#include "pace/pace_gate.h"
#include "weft/bytes/pack.h"
#include "weft/bytes/source.h"
#include "weft/bytes/swarm.h"

namespace weft {

// Work for a worker: adjacent units of one transfer that run, or an offered unit.
struct FetchTask {
  std::shared_ptr<Transfer> transfer;
  std::size_t unit = 0;
  std::size_t end = 0;  // units [unit, end) move together; adjacent in the pack
  bool absent = false;  // no known source has its bytes, or these are silent
  Traffic traffic = Traffic::foreground;
  bool same = false;                              // its units equal the base
  bool counts = false;                            // among the running tasks that FetchQueue bounds by class
  bool young = false;                             // sources may soon have the bytes that they lack
  std::shared_ptr<const PackReader> passed = {};  // once moved: the bytes, if the cache has no space for them
  std::shared_ptr<OfferedUnit> offered = {};      // to be read, instead of units of one transfer
  Range range() const;                            // of the pack
  std::vector<ChunkRun> runs() const;             // one for each unit
  bool is_waited_for() const;                     // a reader waits for a unit
};

class FetchQueue {
 public:
  using Units = std::pair<std::size_t, std::size_t>;  // [first, second)

  // `swarm` and `sources` outlive this. `workers`: at most half of them ask for bytes that no known source has. `gate`:
  // while it holds back a class that no reader waits for, tasks of the class wait there, and readers need the other
  // workers. So at most half of the workers read ahead then, and a quarter stage. Null: it holds back nothing.
  FetchQueue(SwarmFetch& swarm, const FetchSources& sources, unsigned workers,
             std::shared_ptr<const PaceGate> gate = nullptr);

  // Queues a unit for a waiting reader, unless it is here, running or in a swarm. A unit that is queued for read-ahead
  // gets a second, earlier entry. The start of a file is left to its swarm; if it does not come soon, the reader calls
  // want_now().
  void want(const std::shared_ptr<Transfer>& transfer, std::size_t unit);
  // Queues a unit for a waiting reader, also one of a swarm. The unit is neither here nor running.
  void want_now(const std::shared_ptr<Transfer>& transfer, std::size_t unit);
  // Queues units ahead of readers, leaves them to their swarm, or holds them. Skips those that are here, queued,
  // running, held, or in a swarm.
  void want_ahead(const std::shared_ptr<Transfer>& transfer, Units units);
  // As want_ahead(), for idle units of a group.
  void want_batch(const std::shared_ptr<Transfer>& transfer, Units units);
  // Sets the class of the transfer's units that no reader waits for, queued ones too. A transfer whose units are to
  // come does not become one of staging: an earlier request wants them sooner. If a request wants a part of the file,
  // not `all`, such a transfer keeps its class.
  void set_class(const std::shared_ptr<Transfer>& transfer, Traffic background, bool all);
  // Adds an entry for a unit whose state is queued already: it was put back, or has left its swarm.
  void add(const std::shared_ptr<Transfer>& transfer, std::size_t unit, Traffic traffic);

  // Returns work for a worker; nothing if no source is free. Its units run: call ended() when they have ended. One
  // worker copies chunks from bases while others fetch; all copy if nothing else is left.
  std::optional<FetchTask> take();
  // Returns a small unit that was wanted last, for its reader to move it; `is_own` tells such units. Nothing if other
  // units wait too, or if no source is free.
  std::optional<FetchTask> take_own(const std::function<bool(const Transfer& transfer, std::size_t unit)>& is_own);
  // The units of a task have ended, or are put back: call it after that.
  void ended(const FetchTask& task);

  // The blob with these units of a transfer is compared with its base: the entries of equal units for background
  // fetches become copies, and units are held no more.
  void compared(const std::shared_ptr<Transfer>& transfer, Units units);
  // Gives up the bases of the blobs of a running task: the entries of their units become fetches, and those that are
  // not here or running equal the base no more.
  void leave_same(const FetchTask& task);
  // Leaves the swarm of a version. Its missing units of transfers with readers are queued, as far as they are not held.
  // Its other missing units, also held ones, become idle.
  void leave_swarm(const Digest& manifest);

  // Drops entries whose unit was queued twice and is being fetched or has arrived, because they keep their transfers
  // open.
  void drop_past();
  bool has(const Transfer& transfer) const;  // also held, or in a swarm
  bool is_idle() const { return size() == 0 && !swarm_.has_offer(); }
  std::size_t to_come() const;  // held units, and those that swarms are to bring
  std::size_t units() const { return size() + to_come(); }

 private:
  struct Entry {
    std::shared_ptr<Transfer> transfer;
    std::size_t unit = 0;
  };
  using Entries = std::deque<Entry>;

  std::size_t size() const { return wanted_.size() + ahead_.size() + staging_.size() + same_.size(); }
  Entries& background_of(const Transfer& transfer) {
    return transfer.background == Traffic::staging ? staging_ : ahead_;
  }
  void add_ahead(const std::shared_ptr<Transfer>& transfer, std::size_t unit);
  void begin_ahead(const std::shared_ptr<Transfer>& transfer, std::size_t unit, Entries& ahead);
  void release(const std::shared_ptr<Transfer>& transfer, Units units);
  std::optional<FetchTask> take_wanted();
  std::optional<FetchTask> take_background(Entries& entries);
  std::optional<FetchTask> take_same();
  FetchTask take(Entries& entries, std::size_t at, bool absent = false);
  static bool dropped(Entries& entries, std::size_t at);
  Readiness readiness_of(const Transfer& transfer, std::size_t unit) const;
  Readiness readiness_ahead(const Entry& entry) const;
  bool goes_on(const FetchTask& task) const;
  bool may_begin(Traffic background) const;

  SwarmFetch& swarm_;
  const FetchSources& sources_;
  const unsigned absent_max_;  // tasks that may run at a time whose bytes no known source has
  Entries wanted_;
  Entries ahead_;
  Entries staging_;                              // as ahead_, after it
  Entries same_;                                 // as ahead_, for units that equal the base
  std::set<std::shared_ptr<Transfer>> holding_;  // transfers with held units, and some that had such
  const std::shared_ptr<const PaceGate> gate_;
  const unsigned workers_;
  unsigned absent_running_ = 0;
  std::array<unsigned, kTrafficNames.size()> fetching_{};  // tasks that run, by class; without copies from a base
  unsigned same_running_ = 0;
};

}  // namespace weft
