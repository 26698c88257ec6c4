// gc that weftd runs by itself. A version that a user removed is held for gc_delay, as if a reader had it open; if
// space is short, all holds end. A version that a publish with `keep` removed, or that was
// purged, is freed at once. gc also runs once per
// gc_delay, for versions that other nodes removed. Any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <vector>

#include "base/worker.h"
#include "weft/cluster/registry.h"
#include "weft/store/store.h"

namespace weft {

struct HeldVersions {
  std::uint64_t versions = 0;
  std::chrono::seconds next_release{0};  // time until the first hold ends
};

class AutoGc {
 public:
  static constexpr std::size_t kHeldMax = 10'000;  // held versions; beyond, the oldest hold ends
  struct Actions {
    std::function<std::chrono::seconds()> delay;  // returns the current gc_delay
    std::function<bool()> space_is_short;
    std::function<Result<VersionHold>(VersionId)> hold;
    // Runs gc; retried after an error. `all`: rewrites every pack that has dead bytes.
    std::function<Status(bool all, const std::function<bool()>& cancelled)> collect;
    std::function<std::vector<VersionId>()> purged = {};  // as PurgedVersions::unfreed(); empty: there are none
  };
  // `time` outlives this.
  explicit AutoGc(Actions actions, const TimeSource& time = steady_time())
      : actions_(std::move(actions)), time_(time), worker_("gc", Worker::kNoRetry, time) {}

  void start();
  void stop() { worker_.end(); }  // cancels a running gc
  // Keeps `hold` on a removed version for gc_delay.
  void removed(VersionId version, VersionHold hold);
  // Ends the holds on a version that was undeleted.
  void undeleted(VersionId version);
  void look();  // call after changes of the registry: versions that were purged are freed at once
  // Runs gc soon, to free removed versions that are not held.
  void collect_soon();
  HeldVersions held();
  // Ends all holds, so that the next gc frees these versions.
  void release();
  // Runs `run` without the holds, so that a dry run reports what gc would free after release(). Then holds again.
  void run_without(const std::function<void()>& run);

 private:
  struct Held {
    Deadline until;
    VersionId version = 0;
    VersionHold hold;
  };
  std::deque<Held> take();
  Result<Worker::Pause> round();
  bool due();
  bool end_purged();
  Worker::Pause pause() const;

  const Actions actions_;
  const TimeSource& time_;
  std::mutex mutex_;
  std::deque<Held> held_;  // oldest first; guarded by mutex_, as the two below
  Deadline next_{};
  bool soon_ = false;
  std::uint64_t runs_ = 0;         // used by the worker alone, as the next one
  std::vector<VersionId> purged_;  // versions that Actions::purged returned last
  bool all_ = false;               // a purged version was there since the last gc that succeeded
  Worker worker_;
};

// The purged versions whose content this node still has. For one thread.
class PurgedVersions {
 public:
  // All outlive this.
  PurgedVersions(Store& store, Registry& registry) : store_(store), registry_(registry) {}
  // Returns the removed versions among them that gc has not freed.
  Result<std::vector<VersionId>> unfreed();

 private:
  Store& store_;
  Registry& registry_;
  std::set<Uuid> freed_;  // versions that this node has no content of
};

}  // namespace weft
