#include "reading/read_on.h"

#include "os/page_cache.h"

namespace weft {
namespace {

// A reader is sequential after so many bytes: more than the kernel reads around a fault in a mapping (the mount's
// readahead, 4 MiB).
constexpr std::uint64_t kRowMin = 8U << 20U;

}  // namespace

std::vector<FilePiece> pieces_of(const std::vector<Run>& runs) {
  std::vector<FilePiece> pieces;
  for (const Run& run : runs) pieces.push_back({run.offset, run.length, run.place.pack->fd(), run.place.offset});
  return pieces;
}

bool ReadOn::told(std::uint64_t offset, std::uint64_t length) {
  if (reads_.note(offset, length) < kRowMin) return false;
  if (Prefetcher::Watch* const watch = live_.load(std::memory_order_acquire)) watch->told(offset, length);
  return true;
}

// Brings in large pages within the run only. The kernel puts readahead marks on large pages: read(2) on a marked page
// reads ahead past the run. So the whole request is brought in, and the caller needs no read(2).
void ReadOn::bring(const Run& run, std::uint64_t within, std::uint64_t length, bool reads_on) {
  const int fd = run.place.pack->fd();
  const std::uint64_t run_end = run.place.offset + run.length;
  const std::uint64_t at = run.place.offset + within;
  if (blind_.load(std::memory_order_relaxed) || all_cached(fd, at, length)) return;
  if (reads_on) {
    begin(run.offset + within, length);
    for (std::uint64_t page = at / kLargePage * kLargePage; page < at + length; page += kLargePage)
      if (page >= run.place.offset && page + kLargePage <= run_end) bring_in(fd, page, kLargePage);
    if (all_cached(fd, at, length)) return;
  }
  start_reading(fd, at, length);
  if (!all_cached(fd, at, length)) blind_.store(true, std::memory_order_relaxed);
}

// Reports this read to the new watch, because told() had none yet.
void ReadOn::begin(std::uint64_t offset, std::uint64_t length) {
  std::call_once(begun_, [&] {
    watch_ = prefetcher_.watch({pieces_of(runs_), {}, true});
    watch_->told(offset, length);
    live_.store(watch_.get(), std::memory_order_release);
  });
}

}  // namespace weft
