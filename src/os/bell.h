// Wakes threads that wait for another thread. weft wakes a thread by a descriptor in no other way. A Bell is a pipe,
// because the kernel lets the reader of a pipe run on the writer's processor. A waiter on a condition variable or an
// eventfd often wakes on an idle processor, which takes longer than the work that it waited for.
#pragma once

#include <chrono>

#include "os/sys.h"

namespace weft {

// Any thread may call any member, unless the member says otherwise.
class Bell {
 public:
  Bell();
  bool valid() const { return hears_.valid(); }  // false: no descriptors were free

  void ring() const;  // never waits
  // One thread. Returns once the bell has rung since the last wait, at the latest at `until`. The call may return early
  // without a ring; if the bell is not valid, it does so every time.
  void wait(std::chrono::steady_clock::time_point until) const;

  // For poll(2) and the like: readable from a ring until clear(). Every thread that polls it sees the ring.
  int fd() const { return hears_.get(); }
  void clear() const;

 private:
  Fd hears_, rings_;
};

}  // namespace weft
