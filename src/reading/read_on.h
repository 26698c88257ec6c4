// Read-ahead for files of which readers often want a part only, such as files of one tensor. It starts when a reader
// reads sequentially.
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

// Returns the runs of an open file as pieces for a PrefetchSubject.
std::vector<FilePiece> pieces_of(const std::vector<Run>& runs);

// Brings the requested bytes of one open file into the page cache, so that a request is answered from memory. Any
// thread.
class ReadOn {
 public:
  static constexpr std::uint64_t kSizeMin = 16U << 20U;  // smaller files are not read ahead

  // `prefetcher` and `runs` outlive this object.
  ReadOn(Prefetcher& prefetcher, const std::vector<Run>& runs) : prefetcher_(prefetcher), runs_(runs) {}

  // Reports a request for [offset, offset + length) of the file. Returns true if its reader reads sequentially.
  bool told(std::uint64_t offset, std::uint64_t length);
  // Brings in [within, within + length) of a run that is not all in memory. For a sequential reader, brings in the
  // bytes ahead too. Best effort.
  void bring(const Run& run, std::uint64_t within, std::uint64_t length, bool reads_on);
  // True if parts of the file may be cached as large pages, on which read(2) would read far ahead.
  bool in_large_pages() const { return live_.load(std::memory_order_relaxed) != nullptr; }

 private:
  void begin(std::uint64_t offset, std::uint64_t length);

  Prefetcher& prefetcher_;
  const std::vector<Run>& runs_;
  ReadsInARow reads_;
  std::atomic<bool> blind_ = false;  // the kernel does not report which pages are cached
  std::once_flag begun_;
  std::atomic<Prefetcher::Watch*> live_ = nullptr;  // watch_, once it exists
  std::unique_ptr<Prefetcher::Watch> watch_;
};

}  // namespace weft
