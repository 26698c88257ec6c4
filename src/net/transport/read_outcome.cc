#include "net/transport/read_outcome.h"

#include <utility>

namespace weft::net {

void ReadOutcome::finish(Status outcome) {
  {
    const std::lock_guard lock(mutex_);
    if (outcome_) return;
    outcome_ = std::move(outcome);
  }
  changed_.notify_all();
}

Status ReadOutcome::wait(PendingRead::Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, deadline, [this] { return outcome_.has_value(); }))
    return Error{Errc::timed_out, "a read from a peer: no answer in time"};
  return *outcome_;
}

}  // namespace weft::net
