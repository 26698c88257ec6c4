// Limits what each user of the machine holds of one resource of a server: connections, descriptors, inodes, memory.
// There is a limit for each user, and one for all users, which leaves a reserve to root and the server's own user. So
// no user can lock out other users or the administrator. UserTurns is for work that waits instead.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace weft {

// Any thread.
class UserShares {
 public:
  struct Bound {
    std::uint64_t each_max = 0;    // for one user that is neither root nor the server's user
    std::uint64_t others_max = 0;  // for all such users together
    std::uint64_t max = 0;         // for all users
  };
  // The bound for a resource of which there is `max`: a half for each user, three quarters for all but root.
  static Bound bound_of(std::uint64_t max);

  // Each request calls `bound`, which may change its answer and must be quick. `own` is the server's user.
  UserShares(std::function<Bound()> bound, uid_t own);

  // Allots `count` to a user, until the last copy of the returned pointer is destroyed, which may outlive this. Null if
  // the user, or all users without root, would exceed a limit.
  std::shared_ptr<void> take(uid_t user, std::uint64_t count = 1);
  // Returns how much the user could hold if no other user held anything.
  std::uint64_t most_for(uid_t user) const;

  // For a resource whose holders outlive the server, such as files: add() allots until the next recount(), which
  // replaces what all users hold. False as take() gives null.
  [[nodiscard]] bool add(uid_t user, std::uint64_t count = 1);
  void recount(const std::map<uid_t, std::uint64_t>& held);

 private:
  struct Ledger;
  const std::function<Bound()> bound_;
  const std::shared_ptr<Ledger> ledger_;
};

// Returns the user whose turn it is after `last`: the next one in the order of numbers. `users` is a map by user that
// is not empty.
template <class Users>
auto next_in_turn(Users& users, std::optional<uid_t> last) {
  const auto next = last ? users.upper_bound(*last) : users.begin();
  return next == users.end() ? users.begin() : next;
}

// Jobs of several users, in turn by user: a user with many jobs delays another user's job by one job of theirs, not by
// all. One thread at a time.
template <class Job>
class UserTurns {
 public:
  void add(uid_t user, Job job) { jobs_[user].push_back(std::move(job)); }
  // Returns the oldest job of the user whose turn it is; nothing if there is no job.
  std::optional<Job> next() {
    if (jobs_.empty()) return std::nullopt;
    const auto user = next_in_turn(jobs_, last_);
    last_ = user->first;
    std::optional<Job> job(std::move(user->second.front()));
    user->second.pop_front();
    if (user->second.empty()) jobs_.erase(user);
    return job;
  }

 private:
  std::map<uid_t, std::deque<Job>> jobs_;  // without empty ones
  std::optional<uid_t> last_;
};

}  // namespace weft
