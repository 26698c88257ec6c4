#include "node/read_on.h"

#include <utility>

#include "base/page_cache.h"

namespace weft {

void ReadOn::told(std::uint64_t offset, std::uint64_t length) {
  if (reads_.note(offset, length) >= kSizeMin) reads_on_.store(true, std::memory_order_relaxed);
  if (Prefetcher::Watch* const watch = live_.load(std::memory_order_acquire)) watch->told(offset, length);
}

// Large pages hold nothing but the run. The kernel marks them, to read ahead where read(2) meets them, and that is
// beyond the run: so all that was asked for is brought, and nothing of it has to be read.
void ReadOn::bring(const LockedRun& run, std::uint64_t within, std::uint64_t length) {
  const int fd = run.place.pack->fd();
  const std::uint64_t run_end = run.place.offset + run.length;
  const std::uint64_t at = run.place.offset + within;
  if (all_cached(fd, at, length)) return;
  if (reads_on_.load(std::memory_order_relaxed)) {
    begin(run.offset + within, length);
    for (std::uint64_t page = at / kLargePage * kLargePage; page < at + length; page += kLargePage)
      if (page >= run.place.offset && page + kLargePage <= run_end) bring_in(fd, page, kLargePage);
    if (all_cached(fd, at, length)) return;
  }
  start_reading(fd, at, length);
}

void ReadOn::begin(std::uint64_t offset, std::uint64_t length) {
  std::call_once(begun_, [&] {
    PrefetchSubject subject;
    subject.reads_seen = true;
    for (const LockedRun& run : runs_)
      subject.pieces.push_back({run.offset, run.length, run.place.pack->fd(), run.place.offset});
    watch_ = prefetcher_.watch(std::move(subject));
    watch_->told(offset, length);
    live_.store(watch_.get(), std::memory_order_release);
  });
}

}  // namespace weft
