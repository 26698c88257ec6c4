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
// A count is old after a second, or after ten times the duration of counting. A request is refused only by a count that
// began after the request. So a refused request waits for a count, and at least half of the time no count runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
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
  struct Request {
    Clock::time_point begin;
    bool in_turn;  // no announcement runs meanwhile
  };
  using Verdict = std::optional<Status>;  // none: another count must come first
  Status answer(Request request, const std::function<Verdict(const Request&)>& one);
  Verdict reserve(std::uint64_t bytes, const Request& request);
  Verdict judge(const std::function<bool()>& fits, const Request& request);
  Verdict check(std::uint64_t more, const Request& request);
  Status check_disk(std::uint64_t more) const;
  Status grow(std::uint64_t bytes, const std::function<Status()>& act, const std::function<void(std::uint64_t)>& note);
  void count();
  void count_if_old();
  std::uint64_t announced() const;
  bool fits(std::uint64_t more) const;

  DraftTree& tree_;
  std::uint64_t bytes_max_ = 0;
  std::uint64_t inodes_max_ = UINT64_MAX;
  UserShares inodes_;            // by user, at the last count, plus what was made since then
  const Fd file_;                // kDraftSpaceFile; invalid: only this server's announcements count
  std::mutex turn_;              // locked before mutex_
  std::mutex mutex_;             // guards the fields below
  std::uint64_t bytes_ = 0;      // at the last count, plus writes since then
  std::uint64_t announced_ = 0;  // announced() before the last count
  std::uint64_t growing_ = 0;    // bytes of running acts
  Clock::time_point counted_{};
  Clock::duration took_{};               // duration of the last count
  Clock::time_point counted_in_turn_{};  // begin of the last count for a request in turn
};

}  // namespace weft
