// Fetches blobs again that were found damaged during reads, one after the other.
#pragma once

#include <deque>

#include "base/mutex.h"
#include "base/worker.h"
#include "fetch/fetcher.h"
#include "weft/store/cluster_store.h"

namespace weft {

// Any thread.
class Repairs {
 public:
  // All outlive end().
  void begin(Store& store, FetchedCache& cache, Fetcher& fetcher);
  void end() { worker_.end(); }  // waits for the running repair, and drops the queued ones
  // Queues a repair. Allowed before begin() and after end(). Dropped if too many wait: a scrub will find the damage.
  void add(const ContentId& id);

 private:
  Result<Worker::Pause> round(Store& store, FetchedCache& cache, Fetcher& fetcher);

  Mutex mutex_;
  std::deque<ContentId> waiting_ WEFT_GUARDED_BY(mutex_);
  Worker worker_{"repairs"};
};

}  // namespace weft
