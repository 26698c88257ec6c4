// How long readers wait for a daemon that does not answer.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>

#include "weft/deadline.h"

namespace weft {

// A daemon that restarts is waited for. One that stays away is waited for once, and not again by every reader. Any
// thread.
class Absence {
 public:
  static constexpr std::chrono::milliseconds kWaitedFor = kSilenceMax;

  // `expected`: a daemon is to come that nobody has reached yet.
  Absence(bool expected, Deadline now) : until_(expected ? now + kWaitedFor : now) {}

  // The daemon answered: its next absence is a new one.
  void end() {
    const std::lock_guard lock(mutex_);
    until_.reset();
  }
  // The daemon does not answer now. Returns whether it has been waited for long enough.
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
