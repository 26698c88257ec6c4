// The limit of the bytes of all drafts (-o drafts_max), beside which some disk space is kept for publishes and gc. A
// size that a program announces (ftruncate, fallocate) is refused before it exceeds the limit, through whichever mount
// of the store: announcements take turns under a lock, and a file holds the bytes that all mounts have announced. A
// write that this server carries out is refused too. Other mounts notice it, like writes by the kernel, at the next
// create or open after their count is old. A file that belongs to a version does not count. A file that has lost its
// name counts in the mount that has it open.
//
// The inodes of drafts have a limit too, with a share for each user, so that no user's empty files take all of the file
// system. Files are only made through this server, so each one counts at once. Any thread.
//
// A count is old after a second, or after ten times the duration of counting. The first request after that counts.
// Other requests use the old count meanwhile, because a count holds no lock. Bytes and inodes that are added during a
// count may count twice until the next count. A request is refused only by a count that began after the request: the
// first one in which this makes no difference, or the eighth. At least half of the time no count runs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "base/user_shares.h"
#include "drafts/draft_tree.h"
#include "os/sys.h"

namespace weft {

inline constexpr char kDraftSpaceFile[] = "space";  // in DraftTree::folder(): the lock, and the bytes ever announced

class DraftSpace {
 public:
  // `tree` outlives this. Without a limit: a quarter of the file system's bytes or inodes.
  DraftSpace(DraftTree& tree, std::optional<std::uint64_t> bytes_max, std::optional<std::uint64_t> inodes_max = {});

  // Callers have the rights of this process; `act` may assume a user's.
  // admit() is called before a file is made or opened for writing. Errc::no_space: over the limit (EDQUOT), or the disk
  // is full.
  Status admit();
  // admit_inode() is called before the user makes a file, directory or link. Errc::no_space: over the user's share, or
  // that of all users (EDQUOT).
  Status admit_inode(uid_t user);
  // Runs `act`, which sets the size of a draft and so lets it grow by `growth()` bytes. No other announcement runs
  // meanwhile, so both must be short. Returns the result of `act`, or Errc::no_space as admit() if it did not run.
  Status announce(const std::function<std::uint64_t()>& growth, const std::function<Status()>& act);
  // Runs `act`, a write that lets drafts grow by `bytes`. Returns as announce().
  Status write(std::uint64_t bytes, const std::function<Status()>& act);

  std::uint64_t bytes_max() const { return bytes_max_; }
  std::uint64_t bytes();  // counts again if the count is old

 private:
  using Clock = std::chrono::steady_clock;
  using Verdict = std::optional<Status>;  // none: another count must come first
  // Calls `one` with the number of counts that began after the request, until there is a verdict.
  Status answer(const std::function<Verdict(int counts)>& one);
  static Verdict judge(bool fits, bool is_sure, int counts);
  Verdict reserve(std::uint64_t bytes, int counts);
  Verdict check(std::uint64_t more, int counts) const;
  Status check_disk(std::uint64_t more) const;
  Status grow(std::uint64_t bytes, const std::function<Status()>& act, const std::function<void(std::uint64_t)>& note);
  void count(std::unique_lock<std::mutex>& lock);
  void count_if_old();
  void count_since(Clock::time_point time);
  std::uint64_t announced() const;
  std::uint64_t grown() const { return announced() + written_; }
  bool fits(std::uint64_t more, std::uint64_t taken, std::uint64_t since) const;

  DraftTree& tree_;
  std::uint64_t bytes_max_ = 0;
  std::uint64_t inodes_max_ = UINT64_MAX;
  UserShares inodes_;          // by user, at the last count, plus what was made since its begin
  const Fd file_;              // kDraftSpaceFile; invalid: only this server's announcements count
  std::mutex turn_;            // locked before mutex_
  std::mutex mutex_;           // guards the fields below
  std::uint64_t written_ = 0;  // bytes ever written through this server
  std::uint64_t growing_ = 0;  // bytes of running acts
  bool counting_ = false;
  std::condition_variable counted_;
  std::map<uid_t, std::uint64_t> made_;  // inodes, during the running count
  // Of the last count:
  Clock::time_point begin_{}, end_{};
  std::uint64_t bytes_ = 0;
  std::uint64_t grown_before_ = 0;          // grown(): later growth may be part of bytes_
  std::uint64_t grown_after_ = 0;           // later growth is no part of bytes_
  std::map<uid_t, std::uint64_t> made_in_;  // inodes that may count twice
};

}  // namespace weft
