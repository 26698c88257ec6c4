// The lease of the windows of one answer, as their reader knows it. Any thread.
#pragma once

#include <cstdint>
#include <mutex>

#include "weft/deadline.h"

namespace weft::net {

class WindowLease {
 public:
  // The lease begins after `called`, the time of the call.
  explicit WindowLease(Deadline called) : asked_at_(called), until_(called + kWindowLease) {}

  Deadline until() const {
    const std::lock_guard lock(mutex_);
    return until_;
  }
  bool is_question_due(Deadline now) const {
    const std::lock_guard lock(mutex_);
    return now >= asked_at_ + kSignEvery;
  }
  // Records a question that the reader sends now, and returns its number.
  std::uint64_t ask(Deadline now) {
    const std::lock_guard lock(mutex_);
    asked_at_ = now;
    return ++number_;
  }
  // The peer has answered this question, so it restarted the lease after the question was sent. Only the last question
  // counts, because the times of earlier ones are not kept.
  void renewed(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (number == number_) until_ = asked_at_ + kWindowLease;
  }
  // The peer has closed the windows.
  void ended() {
    const std::lock_guard lock(mutex_);
    until_ = {};
  }

 private:
  mutable std::mutex mutex_;
  Deadline asked_at_;  // guarded by mutex_, as the next two
  std::uint64_t number_ = 0;
  Deadline until_;
};

}  // namespace weft::net
