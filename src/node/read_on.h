// Prefetching for files of which often a part is wanted, as of those with one tensor: it begins where somebody reads
// on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "node/lock_blobs.h"
#include "node/prefetch.h"
#include "node/reads_in_a_row.h"

namespace weft {

// One open file, whose requests are brought into the page cache to be answered from there. Any thread.
class ReadOn {
 public:
  // Of smaller files nobody reads on.
  static constexpr std::uint64_t kSizeMin = 4U << 20U;

  // Both outlive this.
  ReadOn(Prefetcher& prefetcher, const std::vector<LockedRun>& runs) : prefetcher_(prefetcher), runs_(runs) {}

  // [offset, offset + length) of the file is asked for: to be told before its runs are brought.
  void told(std::uint64_t offset, std::uint64_t length);
  // [within, within + length) of a run. Best effort.
  void bring(const LockedRun& run, std::uint64_t within, std::uint64_t length);

 private:
  void begin(std::uint64_t offset, std::uint64_t length);

  Prefetcher& prefetcher_;
  const std::vector<LockedRun>& runs_;
  ReadsInARow reads_;
  std::atomic<bool> reads_on_ = false;
  std::once_flag begun_;
  std::atomic<Prefetcher::Watch*> live_ = nullptr;  // watch_, once it is there
  std::unique_ptr<Prefetcher::Watch> watch_;
};

}  // namespace weft
