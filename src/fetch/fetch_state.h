// The state that the parts of a Fetcher share, with the mutex that guards it.
#pragma once

#include <functional>
#include <utility>

#include "base/mutex.h"
#include "fetch/fetch_options.h"
#include "fetch/fetch_queue.h"
#include "fetch/fetch_sources.h"
#include "fetch/swarm_fetch.h"
#include "fetch/transfer_table.h"

namespace weft {

// Under the mutex no source is asked for bytes, and VersionSwarms is not called: calls of either may wait or call back.
// The mutex of FetchSources comes after it.
struct FetchState {
  // As the constructors of the members.
  FetchState(const FetchOptions& options, const FetchSources& sources, std::function<void()> wake_swarms)
      : swarm(options.patience, kAcceptedMax, std::move(wake_swarms)),
        queue(swarm, sources, options.threads),
        table(queue, swarm, options.kept) {}

  mutable Mutex mutex;
  Condition work;     // a unit was queued, or the end
  Condition arrived;  // units arrived, or blobs entered the index
  Condition keep;     // complete blobs should enter the index, or the end
  SwarmFetch swarm WEFT_GUARDED_BY(mutex);
  FetchQueue queue WEFT_GUARDED_BY(mutex);
  TransferTable table WEFT_GUARDED_BY(mutex);  // and the state of its transfers
  bool ending WEFT_GUARDED_BY(mutex) = false;
};

}  // namespace weft
