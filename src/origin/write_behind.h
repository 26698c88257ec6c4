// A background thread of the daemon that copies this node's publishes to the origin. It also writes the catalog events
// of all nodes (versions, tags, removals) to the origin's journal, so that no record is lost with its node. The store
// records the remaining work, the unsaved versions and the events that are not replicated, so a restart continues it.
// The store also records the id of the origin, the first one that it met; content at another origin does not count.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/time_source.h"
#include "pace/pace_gate.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

struct WriteBehindStatus {
  std::uint64_t waiting = 0;        // unsaved versions
  std::string active;               // "model@1"; "" while nothing moves
  std::uint64_t bytes_written = 0;  // since the start
  std::uint64_t versions_saved = 0;
  std::uint64_t records_written = 0;  // journal records
  std::string problem;                // why the last try failed; "" if it succeeded
};

using LatestCollection = std::function<OriginCollection()>;

// Any thread.
class WriteBehind {
 public:
  // `store` and `ledger` must outlive this object. If the directory is missing or does not answer, the thread retries.
  // `collection`: as Registry::origin_collection(). `time`: of the pauses between rounds. Both outlive the thread, an
  // abandoned one too. `gate` paces the writes; null: nothing does.
  WriteBehind(Store& store, OriginLedger& ledger, std::string origin_path, LatestCollection collection = {},
              const TimeSource& time = steady_time(), std::shared_ptr<PaceGate> gate = nullptr);
  // Takes a few seconds at most. A thread that hangs in the origin's file system is abandoned, and cannot use the
  // store.
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  void wake();  // call after a publish, tag or removal; without a call, changes are seen within half a minute
  // wait() returns once all versions and events of this moment are at the origin, wait_for() once this version is.
  // Errc::cancelled: `cancelled`, which is called every 100 ms and may call status(). Errc::changed: the directory has
  // no origin, or not the one that the store knows. Errc::absent: a version lacks bytes that no known node would write;
  // the others are at the origin.
  Status wait(const std::function<bool()>& cancelled);
  Status wait_for(VersionId version, const std::function<bool()>& cancelled);
  // Makes the origin in the directory the store's origin, and creates it if there is none. All publishes of this node
  // and all events that it knows are then written there. Errc::cancelled.
  Status take_new_origin(const std::function<bool()>& cancelled);
  WriteBehindStatus status() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace weft
