#include "fetch/fetch_state.h"

namespace weft {

std::uint64_t FetchState::unlisted_bytes(const std::set<PackId>& listed) {
  const MutexLock lock(mutex);
  return table.unlisted_bytes(listed);
}

std::uint64_t FetchState::coming_bytes() {
  const MutexLock lock(mutex);
  return table.coming_bytes();
}

void FetchState::drop_unused(Duration unused) {
  const MutexLock lock(mutex);
  table.drop_unused(unused);
}

bool FetchState::hurry_complete() {
  const MutexLock lock(mutex);
  table.hurry_complete();
  keep.notify_one();
  return !ending;
}

void FetchState::wait_for_change(Duration time_max) {
  UniqueLock lock(mutex);
  if (!ending) arrived.wait_for(lock, time_max);
}

bool FetchState::is_waited_for(const FetchTask& task) const {
  const MutexLock lock(mutex);
  return task.is_waited_for();
}

bool FetchState::is_ending() const {
  const MutexLock lock(mutex);
  return ending;
}

void FetchState::wake_worker() {
  {
    const MutexLock lock(mutex);
    if (queue.is_idle()) return;
  }
  work.notify_one();
}

}  // namespace weft
