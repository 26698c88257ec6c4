// The time that a class sees, and how it waits: the steady clock, or one that a test moves.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "weft/deadline.h"

namespace weft {

// Any thread.
class TimeSource {
 public:
  virtual ~TimeSource() = default;
  virtual Deadline now() const { return Deadline::clock::now(); }
  // Until `wake` is notified, at most until then. It may return for no reason.
  virtual void wait(std::condition_variable& wake, std::unique_lock<std::mutex>& lock, Deadline until) const {
    wake.wait_until(lock, until);
  }
};

inline const TimeSource& steady_time() {
  static const TimeSource steady;
  return steady;
}

}  // namespace weft
