// The time that readers wait for a daemon that does not answer.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>

#include "weft/deadline.h"

namespace weft {

// Readers wait while a daemon restarts. If it stays away, they wait kWaitedFor once, and not again for each read. Any
// thread.
class Absence {
 public:
  static constexpr std::chrono::milliseconds kWaitedFor = kSilenceMax;

  // `expected`: readers also wait for the first daemon. If false, they wait only for a daemon that has answered before.
  Absence(bool expected, Deadline now) : until_(expected ? now + kWaitedFor : now) {}

  // Call when the daemon answers. Its next absence is a new one.
  void end() {
    const std::lock_guard lock(mutex_);
    until_.reset();
  }
  // Call when the daemon does not answer. True if readers have waited long enough.
  bool is_over(Deadline now) {
    const std::lock_guard lock(mutex_);
    if (!until_) until_ = now + kWaitedFor;
    return now >= *until_;
  }

 private:
  std::mutex mutex_;
  std::optional<Deadline> until_;  // guarded by mutex_; none while the daemon answers
};

}  // namespace weft
