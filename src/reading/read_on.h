// Prefetching for files of which often a part is wanted, as of those with one tensor: it begins where somebody reads
// on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "blobs/open_blobs.h"
#include "reading/prefetch.h"
#include "reading/reads_in_a_row.h"

namespace weft {

// The runs of an open file, for who reads ahead in it.
std::vector<FilePiece> pieces_of(const std::vector<Run>& runs);

// One open file, whose requests are brought into the page cache to be answered from there. Any thread.
class ReadOn {
 public:
  static constexpr std::uint64_t kSizeMin = 16U << 20U;  // of a file that is worth it

  // Both outlive this.
  ReadOn(Prefetcher& prefetcher, const std::vector<Run>& runs) : prefetcher_(prefetcher), runs_(runs) {}

  // [offset, offset + length) of the file is asked for. True: by one who reads on.
  bool told(std::uint64_t offset, std::uint64_t length);
  // Brings [within, within + length) of a run, not all of which is in memory, and what lies ahead for one who reads on.
  // Best effort.
  void bring(const Run& run, std::uint64_t within, std::uint64_t length, bool reads_on);
  // Some of the file may have been brought in large pages, which read(2) had better not meet.
  bool in_large_pages() const { return live_.load(std::memory_order_relaxed) != nullptr; }

 private:
  void begin(std::uint64_t offset, std::uint64_t length);

  Prefetcher& prefetcher_;
  const std::vector<Run>& runs_;
  ReadsInARow reads_;
  std::atomic<bool> blind_ = false;  // the kernel does not say what is in the page cache
  std::once_flag begun_;
  std::atomic<Prefetcher::Watch*> live_ = nullptr;  // watch_, once it is there
  std::unique_ptr<Prefetcher::Watch> watch_;
};

}  // namespace weft
