// A clock that only the test moves. A wait on it lasts until the test has moved the clock to the deadline, or until the
// condition is notified. The test can wait until a thread waits on the clock.
#pragma once

#include <set>

#include "base/time_source.h"

namespace weft::testing {

class SteppedTime final : public TimeSource {
 public:
  static constexpr Deadline::duration kForever = Deadline::duration::max();

  Deadline now() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  void wait(std::condition_variable& wake, std::unique_lock<std::mutex>& lock, Deadline until) const override {
    const Waiter waiter{until, &wake, lock.mutex()};
    {
      const std::lock_guard own(mutex_);
      if (until <= now_) return;
      waiters_.insert(waiter);
      waits_.notify_all();
    }
    wake.wait(lock);
    const std::lock_guard own(mutex_);
    waiters_.erase(waiter);
  }
  // Waits until a thread waits on the clock, and returns how long it would wait. kForever: until it is notified.
  Deadline::duration next_pause() const {
    std::unique_lock lock(mutex_);
    waits_.wait(lock, [this] { return !waiters_.empty(); });
    const Deadline until = waiters_.begin()->until;
    return until == Deadline::max() ? kForever : until - now_;
  }
  // Moves the clock, and ends the waits that are over then. next_pause() sees only later waits of their threads.
  void pass(Deadline::duration time) {
    std::set<Waiter> over;
    {
      const std::lock_guard lock(mutex_);
      now_ += time;
      while (!waiters_.empty() && waiters_.begin()->until <= now_) over.insert(waiters_.extract(waiters_.begin()));
    }
    for (const Waiter& waiter : over) {
      const std::lock_guard lock(*waiter.mutex);  // the thread has begun its wait
      waiter.wake->notify_all();
    }
  }

 private:
  struct Waiter {
    Deadline until;
    std::condition_variable* wake;
    std::mutex* mutex;
    auto operator<=>(const Waiter&) const = default;
  };
  mutable std::mutex mutex_;
  mutable std::condition_variable waits_;
  mutable std::set<Waiter> waiters_;           // guarded by mutex_, as the next
  Deadline now_{std::chrono::hours(100'000)};  // years after the epoch: a time point of 0 means never
};

}  // namespace weft::testing
