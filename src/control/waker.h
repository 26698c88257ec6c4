// Wakes a thread that waits in poll(2). Any thread.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "os/sys.h"

namespace weft::control {

class Waker {
 public:
  Waker() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  int fd() const { return fd_.get(); }
  void wake() const {
    const std::uint64_t one = 1;
    static_cast<void>(!::write(fd_.get(), &one, sizeof one));
  }
  void clear() const {
    std::uint64_t count = 0;
    static_cast<void>(!::read(fd_.get(), &count, sizeof count));
  }

 private:
  Fd fd_;
};

}  // namespace weft::control
