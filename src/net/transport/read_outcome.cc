#include "net/transport/read_outcome.h"

#include <utility>

namespace weft::net {

bool ReadOutcome::finish(Status outcome) {
  {
    const std::lock_guard lock(mutex_);
    if (over_) return false;
    over_ = true;
    set_aside_ = false;
    outcome_ = std::move(outcome);
  }
  changed_.notify_all();
  return true;
}

Status ReadOutcome::wait(PendingRead::Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, deadline, [this] { return over_; }))
    return Error{Errc::timed_out, "a read from a peer: no answer in time"};
  return outcome_;
}

void ReadOutcome::set_aside() {
  const std::lock_guard lock(mutex_);
  set_aside_ = !over_;
}

bool ReadOutcome::is_set_aside() const {
  const std::lock_guard lock(mutex_);
  return set_aside_;
}

}  // namespace weft::net
