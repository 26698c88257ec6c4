#include "fetch/requests/repairs.h"

#include <algorithm>

#include "base/log.h"
#include "base/sha256.h"
#include "fetch/requests/refetch.h"

namespace weft {
namespace {

constexpr std::size_t kWaitingMax = 4096;

}  // namespace

void Repairs::begin(Store& store, FetchedCache& cache, Fetcher& fetcher) {
  worker_.start([this, &store, &cache, &fetcher] { return round(store, cache, fetcher); });
}

void Repairs::add(const ContentId& id) {
  {
    const MutexLock lock(mutex_);
    if (waiting_.size() >= kWaitingMax || std::ranges::find(waiting_, id) != waiting_.end()) return;
    waiting_.push_back(id);
  }
  worker_.wake();
}

// Repairs the first blob that waits.
Result<Worker::Pause> Repairs::round(Store& store, FetchedCache& cache, Fetcher& fetcher) {
  UniqueLock lock(mutex_);
  if (waiting_.empty()) return Worker::kUntilWoken;
  const ContentId id = waiting_.front();
  waiting_.pop_front();
  lock.unlock();
  SilentProgress progress([this] { return worker_.ending(); });
  const Status repaired = refetch_blob(store, cache, fetcher, id, progress);
  if (repaired.ok())
    log_info("the {} bytes with digest {} are whole again", id.length, to_hex(id.root));
  else
    log_warning("the {} bytes with digest {} stay damaged: {}", id.length, to_hex(id.root), repaired.error().message);
  return Worker::Pause(0);
}

}  // namespace weft
