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
  // With `on_sign`, which outlives this, each sign of the peer's life moves the deadline: it is then as far away as
  // now.
  CallWait(Deadline now, Deadline deadline, const OnSign& on_sign)
      : deadline_(deadline), patience_(deadline - now), on_sign_(on_sign) {}

  Deadline deadline() const { return deadline_; }
  Deadline next() const { return std::min(deadline_, ask_at_); }  // when something is due: a question, or the end

  // The request was sent: a wait begins.
  void begin(Deadline now) {
    sign_ = now;
    pause_ = kFirstSignAfter;
    ask_at_ = now + pause_;
  }
  // Records the last sign of life. True if it is a new one, and the caller wants to know.
  bool heard(Deadline sign) {
    if (!on_sign_ || sign <= sign_) return false;
    sign_ = sign;
    deadline_ = std::max(deadline_, sign + patience_);
    return true;
  }
  bool is_wanted() const { return on_sign_(); }  // the caller's answer to a sign
  void asked(Deadline now) {
    pause_ = std::min<Deadline::duration>(2 * pause_, kSignEvery);
    ask_at_ = now + pause_;
  }
  // Records that the answer has come, which is a sign of the peer's life.
  void answered(Deadline now) {
    if (on_sign_) deadline_ = std::max(deadline_, now + patience_);
  }

 private:
  Deadline deadline_;
  const Deadline::duration patience_;
  const OnSign& on_sign_;
  Deadline sign_{};
  Deadline::duration pause_ = kFirstSignAfter;
  Deadline ask_at_{};
};

}  // namespace weft::net
