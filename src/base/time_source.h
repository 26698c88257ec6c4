// A clock and its waits: the steady clock, or a clock that a test moves.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/mutex.h"
#include "weft/deadline.h"

namespace weft {

// Any thread.
class TimeSource {
 public:
  virtual ~TimeSource() = default;
  virtual Deadline now() const { return Deadline::clock::now(); }
  // Waits until `wake` is notified, at the latest until `until`; Deadline::max(): without a limit. May return early
  // without a reason.
  virtual void wait(std::condition_variable& wake, std::unique_lock<std::mutex>& lock, Deadline until) const {
    if (until == Deadline::max())
      wake.wait(lock);
    else
      wake.wait_until(lock, until);
  }
  void wait(Condition& wake, UniqueLock& lock, Deadline until) const { wait(wake.native(), lock.native(), until); }
};

inline const TimeSource& steady_time() {
  static const TimeSource steady;
  return steady;
}

}  // namespace weft
