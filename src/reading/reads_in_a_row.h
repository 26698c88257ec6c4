// Counts how many bytes of a file are read in a row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace weft {

// Any thread. A row restarts at a read elsewhere, and at a read after which less than half of the row's span would be
// read. Two readers far apart restart each other's row.
class ReadsInARow {
 public:
  // Returns the bytes of the row, including this read. Bytes that were requested twice count at most up to the row's
  // span.
  std::uint64_t note(std::uint64_t offset, std::uint64_t length) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t end = offset + length;
    const bool near = asked_ > 0 && offset <= end_ + kDisorder && end_ <= end + kDisorder;
    const std::uint64_t first = std::min(begin_, offset);
    const std::uint64_t span = std::max(end_, end) - first;
    const bool goes_on = near && span / 2 <= asked_ + length;
    begin_ = goes_on ? first : offset;
    end_ = goes_on ? first + span : end;
    asked_ = goes_on ? std::min(asked_ + length, span) : length;
    return asked_;
  }

 private:
  // The kernel may reorder the reads of one reader by so many bytes.
  static constexpr std::uint64_t kDisorder = 8U << 20U;

  std::mutex mutex_;
  std::uint64_t begin_ = 0;  // guarded by mutex_, as are end_ and asked_
  std::uint64_t end_ = 0;
  std::uint64_t asked_ = 0;
};

}  // namespace weft
