// How much all drafts may take (-o drafts_max). A size that a program announces (ftruncate, fallocate) is refused
// before it passes the bound, whichever mount of the store the program writes through: announcements take turns under a
// lock, and a file says how much all mounts have announced. A write that this server carries out is refused too; other
// mounts see it, as they see the kernel's own writes, when something is next made or opened, once the count is old. A
// file that is a version's too takes nothing. A file that has lost its name counts in the mount that has it open.
// Beside the bound some space of the disk is kept for publishes and gc. Any thread.
//
// A count is old after a second, or after ten times as long as counting takes. Nothing is refused by a count that is
// older than the request: so who is refused waits for one, and at least half of the time nobody counts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "fuse/drafts/draft_tree.h"
#include "os/sys.h"

namespace weft {

inline constexpr char kDraftSpaceFile[] = "space";  // in DraftTree::folder(): the lock, and the bytes ever announced

class DraftSpace {
 public:
  // `tree` outlives this. Without `bytes_max`: a quarter of the file system.
  DraftSpace(DraftTree& tree, std::optional<std::uint64_t> bytes_max);

  // Each is called with the rights of this process; `act` may take those of a user.
  // Something is to be made, or opened for writing. 0, -EDQUOT, or -ENOSPC.
  int admit();
  // Runs `act`, which sets the size of a draft and so lets it grow by `growth()` bytes. Nobody else announces a size
  // meanwhile, so both are short. Returns what `act` does, or -EDQUOT or -ENOSPC if it did not run.
  int announce(const std::function<std::uint64_t()>& growth, const std::function<int()>& act);
  // Runs `act`, a write that lets drafts grow by that many bytes. The same answers.
  int write(std::uint64_t bytes, const std::function<int()>& act);

  std::uint64_t bytes_max() const { return bytes_max_; }
  std::uint64_t bytes();  // by a count that is not old

 private:
  using Clock = std::chrono::steady_clock;
  struct Request {
    Clock::time_point begin;
    bool in_turn;  // nobody announces a size
  };
  int answer(Request request, const std::function<int(const Request&)>& one);
  int reserve(std::uint64_t bytes, const Request& request);
  int check(std::uint64_t more, const Request& request);
  int grow(std::uint64_t bytes, const std::function<int()>& act, const std::function<void(std::uint64_t)>& note);
  void count();
  void count_if_old();
  std::uint64_t announced() const;
  bool fits(std::uint64_t more) const;

  DraftTree& tree_;
  std::uint64_t bytes_max_ = 0;
  const Fd file_;                // kDraftSpaceFile; none: this server alone is counted
  std::mutex turn_;              // held before mutex_
  std::mutex mutex_;             // guards all below
  std::uint64_t bytes_ = 0;      // when they were counted, and written since
  std::uint64_t announced_ = 0;  // announced() before they were counted
  std::uint64_t growing_ = 0;    // of acts that run
  Clock::time_point counted_{};
  Clock::duration took_{};               // to count them
  Clock::time_point counted_in_turn_{};  // the begin of the last count of that kind
};

}  // namespace weft
