// The state that the parts of a Fetcher share, with the mutex that guards it.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "fetch/cache_room.h"
#include "fetch/fetch_options.h"
#include "fetch/fetch_queue.h"
#include "fetch/fetch_sources.h"
#include "fetch/passing_bytes.h"
#include "fetch/rate_meter.h"
#include "fetch/swarm_fetch.h"
#include "fetch/transfer_table.h"

namespace weft {

// Under the mutex no source is asked for bytes, and VersionSwarms is not called: calls of either may wait or call back.
// The mutexes of FetchSources and CacheRoom come after it.
struct FetchState final : FilledPacks {
  // As the constructors of the members.
  FetchState(const FetchOptions& options, const FetchSources& sources, std::function<void()> wake_swarms)
      : swarm(options.patience, kAcceptedMax, std::move(wake_swarms)),
        queue(swarm, sources, options.threads, options.gate),
        table(queue, swarm, options.kept) {}

  std::uint64_t unlisted_bytes(const std::set<PackId>& listed) override WEFT_EXCLUDES(mutex);
  std::uint64_t coming_bytes() override WEFT_EXCLUDES(mutex);
  void drop_unused(Duration unused) override WEFT_EXCLUDES(mutex);
  bool hurry_complete() override WEFT_EXCLUDES(mutex);
  void wait_for_change(Duration time_max) override WEFT_EXCLUDES(mutex);

  bool is_ending() const WEFT_EXCLUDES(mutex);
  bool is_waited_for(const FetchTask& task) const WEFT_EXCLUDES(mutex);
  // Wakes a worker if there is work, to fetch the next bytes while the thread that has the last ones verifies them.
  void wake_worker() WEFT_EXCLUDES(mutex);

  mutable Mutex mutex;
  Condition work;     // a unit was queued, or the end
  Condition arrived;  // units arrived, or blobs entered the index
  Condition keep;     // complete blobs should enter the index, or the end
  SwarmFetch swarm WEFT_GUARDED_BY(mutex);
  FetchQueue queue WEFT_GUARDED_BY(mutex);
  TransferTable table WEFT_GUARDED_BY(mutex);  // and the state of its transfers
  PassingBytes passing WEFT_GUARDED_BY(mutex){64U << 20U};
  RateMeter rate WEFT_GUARDED_BY(mutex);              // at which bytes come from sources
  SourceCount local WEFT_GUARDED_BY(mutex){"local"};  // FetchStatus::local
  bool ending WEFT_GUARDED_BY(mutex) = false;
};

}  // namespace weft
