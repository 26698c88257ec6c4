// The daemon's last answers about who may publish, in memory that outlives the server. They tell a server which users
// should wait for a daemon that restarts. No answer here gives a user the right to publish. Any thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weft/deadline.h"

namespace weft {

inline constexpr std::size_t kKnownUsersMax = 64;  // beyond that, the oldest answer is forgotten

// In shared memory. Zero bytes: no answers.
struct RightsWords {
  std::array<std::atomic<std::uint64_t>, kKnownUsersMax> answers;  // user, 1 if allowed, and seconds of steady time
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class KnownRights {
 public:
  explicit KnownRights(RightsWords& words) : words_(words) {}

  void note(uid_t user, bool may_publish, Deadline now);
  // True if the daemon answered at most a minute before: it may have restarted since.
  bool heard(Deadline now) const;
  // The same, and its last answer about this user was that the user may publish.
  bool may_publish(uid_t user, Deadline now) const;

 private:
  RightsWords& words_;
};

}  // namespace weft
