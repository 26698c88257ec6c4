// How long a caller waits for the answer to a call, over all its tries, and when it asks the peer about the call.
#pragma once

#include <algorithm>

#include "weft/cluster/exchange.h"
#include "weft/deadline.h"

namespace weft::net {

// Wakes the waiter of a call, which looks at the call then. Any thread.
class CallWaiter {
 public:
  virtual ~CallWaiter() = default;
  virtual void wake() = 0;  // must not wait; also called on the transport's thread
};

// One thread at a time.
class CallWait {
 public:
  using Clock = Deadline::clock;
  // With `on_sign`, which outlives this, each sign of the peer's life moves the deadline: it is then as far away as
  // now.
  CallWait(Deadline deadline, const OnSign& on_sign)
      : deadline_(deadline), patience_(deadline - Clock::now()), on_sign_(on_sign) {}

  Deadline deadline() const { return deadline_; }
  Deadline next() const { return std::min(deadline_, ask_at_); }  // when something is due: a question, or the end

  // The request was sent: a wait begins.
  void begin() {
    sign_ = Clock::now();
    pause_ = kFirstSignAfter;
    ask_at_ = sign_ + pause_;
  }
  // Records the last sign of life. True if it is a new one, and the caller wants to know.
  bool heard(Deadline sign) {
    if (!on_sign_ || sign <= sign_) return false;
    sign_ = sign;
    deadline_ = std::max(deadline_, sign + patience_);
    return true;
  }
  bool is_wanted() const { return on_sign_(); }  // the caller's answer to a sign
  void asked() {
    pause_ = std::min<Clock::duration>(2 * pause_, kSignEvery);
    ask_at_ = Clock::now() + pause_;
  }
  // The answer has come, which is a sign of life.
  void answered() {
    if (on_sign_) deadline_ = std::max(deadline_, Clock::now() + patience_);
  }

 private:
  Deadline deadline_;
  const Clock::duration patience_;
  const OnSign& on_sign_;
  Deadline sign_{};
  Clock::duration pause_ = kFirstSignAfter;
  Deadline ask_at_{};
};

}  // namespace weft::net
