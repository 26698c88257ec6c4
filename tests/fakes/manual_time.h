// A clock that only advances when the test moves it, or when a thread waits: a wait takes no real time and advances it
// to the deadline.
#pragma once

#include <atomic>

#include "base/time_source.h"

namespace weft::testing {

class ManualTime final : public TimeSource {
 public:
  Deadline now() const override { return Deadline(Deadline::duration(passed_.load())); }
  void wait(std::condition_variable& /*wake*/, std::unique_lock<std::mutex>& /*lock*/, Deadline until) const override {
    if (until > now()) passed_ = until.time_since_epoch().count();
  }
  void pass(Deadline::duration time) { passed_ += time.count(); }

 private:
  // Starts years after the epoch of the steady clock: a time point of 0 means never.
  mutable std::atomic<Deadline::rep> passed_ = Deadline::duration(std::chrono::hours(100'000)).count();
};

}  // namespace weft::testing
