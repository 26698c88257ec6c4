// Wakes one thread that waits for what another does, which soon waits itself: by a pipe, because the kernel lets its
// reader go on where the writer runs. A condition variable's waiter is often woken on a processor that sleeps, and that
// takes longer than what was waited for.
#pragma once

#include <chrono>

#include "os/sys.h"

namespace weft {

class Bell {
 public:
  Bell();  // where descriptors have run out, wait() looks again and again

  void ring() const;  // any thread; never waits
  // Until it rings, or has rung since the last wait; at most until then. One thread. It may return for no reason.
  void wait(std::chrono::steady_clock::time_point until) const;

 private:
  Fd hears_, rings_;
};

}  // namespace weft
