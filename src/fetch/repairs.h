// Fetches blobs again that were found damaged during reads, one after the other.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "fetch/fetcher.h"
#include "weft/cluster_store.h"

namespace weft {

// Any thread.
class Repairs {
 public:
  Repairs() = default;
  ~Repairs() { end(); }
  Repairs(const Repairs&) = delete;
  Repairs& operator=(const Repairs&) = delete;

  // All outlive end().
  void begin(Store& store, FetchedCache& cache, Fetcher& fetcher);
  void end();  // waits for the running repair, and drops the queued ones
  // Queues a repair. Allowed before begin() and after end(). Dropped if too many wait: a scrub will find the damage.
  void add(const ContentId& id);

 private:
  void run(Store& store, FetchedCache& cache, Fetcher& fetcher);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<ContentId> waiting_;  // guarded by mutex_, as the next
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace weft
