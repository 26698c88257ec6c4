// How much all drafts may take (-o drafts_max). A size that a program announces (ftruncate, fallocate, a write that
// this server carries out) is refused before it passes the bound. The kernel's own writes are seen when something is
// next made or opened, at most a second late. A file that is a version's too takes nothing. Beside the bound some space
// of the disk is kept for publishes and gc. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "fuse/drafts/draft_tree.h"

namespace weft {

class DraftSpace {
 public:
  // `tree` outlives this. Without `bytes_max`: a quarter of the file system.
  DraftSpace(DraftTree& tree, std::optional<std::uint64_t> bytes_max);

  // Something is to be made, or opened for writing. 0, -EDQUOT, or -ENOSPC.
  int admit();
  // Runs `act`, which lets drafts grow by that many bytes. What it returns; -EDQUOT or -ENOSPC: it did not run.
  int grow(std::uint64_t bytes, const std::function<int()>& act);

  std::uint64_t bytes_max() const { return bytes_max_; }
  std::uint64_t bytes();  // at most a second old

 private:
  using Clock = std::chrono::steady_clock;
  void count();
  int check(std::uint64_t more);

  DraftTree& tree_;
  std::uint64_t bytes_max_ = 0;
  std::mutex mutex_;
  std::uint64_t bytes_ = 0;    // guarded by mutex_, as those below: when they were counted, and announced since
  std::uint64_t growing_ = 0;  // of acts that run
  Clock::time_point counted_{};
  Clock::duration took_{};  // to count them
};

}  // namespace weft
