// How much of a file its reader has read in a row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace weft {

// Any thread. A read elsewhere begins a row anew, and so does one that leaves most of it out; so do two readers in turn
// who are apart.
class ReadsInARow {
 public:
  // Returns the bytes of its row, this read included: what was asked for twice counts at most as what lies between the
  // row's ends.
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
  // The kernel's reads of one reader overtake each other by so much.
  static constexpr std::uint64_t kDisorder = 8U << 20U;

  std::mutex mutex_;
  std::uint64_t begin_ = 0;  // guarded by mutex_, as are the following
  std::uint64_t end_ = 0;
  std::uint64_t asked_ = 0;
};

}  // namespace weft
