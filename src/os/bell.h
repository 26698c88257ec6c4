// Wakes threads that wait for what another does: the one way in which a thread of weft is woken by a descriptor. It is
// a pipe, because the kernel lets the reader of a pipe go on where the writer runs. A waiter on a condition variable or
// an eventfd is often woken on a processor that sleeps, and that takes longer than what was waited for.
#pragma once

#include <chrono>

#include "os/sys.h"

namespace weft {

// Any thread, unless a member says otherwise.
class Bell {
 public:
  Bell();
  bool valid() const { return hears_.valid(); }  // false: descriptors have run out

  void ring() const;  // never waits
  // One thread. Returns once the bell has rung since the last wait, at most at `until`. It may return for no reason,
  // and does so again and again if the bell is not valid.
  void wait(std::chrono::steady_clock::time_point until) const;

  // For poll(2) and its like: readable from a ring until clear(). All who wait for it see it.
  int fd() const { return hears_.get(); }
  void clear() const;

 private:
  Fd hears_, rings_;
};

}  // namespace weft
