// Keeps versions for other nodes that are about to go: fetches each version as a whole, and pins it. A worker does this
// for one version at a time, in the order of the requests. A version that fails is dropped: the other node requests it
// again. Any thread.
#pragma once

#include <deque>

#include "base/mutex.h"
#include "base/worker.h"
#include "fetch/fetcher.h"
#include "peers/answers.h"
#include "weft/store/store.h"

namespace weft {

class KeptVersions final : public VersionKeeper {
 public:
  static constexpr std::size_t kWaitingMax = 10'000;
  // All outlive end().
  void begin(Store& store, Fetcher& fetcher);
  void end() { worker_.end(); }  // waits for the running fetch, which it cancels
  // As VersionKeeper::keep(). Allowed before begin() and after end(). A version that waits already waits once.
  Status keep(const KeepVersion& version) override;

 private:
  Result<Worker::Pause> round(Store& store, Fetcher& fetcher);

  Mutex mutex_;
  std::deque<KeepVersion> waiting_ WEFT_GUARDED_BY(mutex_);  // the front one is in work
  Worker worker_{"kept versions"};
};

}  // namespace weft
