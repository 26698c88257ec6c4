#include "fetch/repairs.h"

#include <algorithm>

#include "base/log.h"
#include "base/sha256.h"
#include "fetch/refetch.h"

namespace weft {
namespace {

constexpr std::size_t kWaitingMax = 4096;

}  // namespace

void Repairs::begin(Store& store, FetchedCache& cache, Fetcher& fetcher) {
  thread_ = std::thread([this, &store, &cache, &fetcher] { run(store, cache, fetcher); });
}

void Repairs::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Repairs::add(const ContentId& id) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kWaitingMax || std::ranges::find(waiting_, id) != waiting_.end()) return;
    waiting_.push_back(id);
  }
  wake_.notify_all();
}

void Repairs::run(Store& store, FetchedCache& cache, Fetcher& fetcher) {
  SilentProgress progress([this] {
    const std::lock_guard ending(mutex_);
    return ending_;
  });
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    const ContentId id = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    const Status repaired = refetch_blob(store, cache, fetcher, id, progress);
    if (repaired.ok())
      log_info("the {} bytes with digest {} are whole again", id.length, to_hex(id.root));
    else
      log_warning("the {} bytes with digest {} stay damaged: {}", id.length, to_hex(id.root), repaired.error().message);
    lock.lock();
  }
}

}  // namespace weft
