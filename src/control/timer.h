// A descriptor that becomes readable once, after a set time. Any thread.
#pragma once

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "os/sys.h"

namespace weft::control {

class Timer {
 public:
  Timer() : fd_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {}
  int fd() const { return fd_.get(); }
  void set(std::chrono::nanoseconds after) const {
    using std::chrono::seconds;
    const auto whole = std::chrono::floor<seconds>(after);
    itimerspec spec{};
    spec.it_value.tv_sec = whole.count();
    spec.it_value.tv_nsec = std::max<long>((after - whole).count(), 1);
    ::timerfd_settime(fd_.get(), 0, &spec, nullptr);
  }
  void clear() const {
    std::uint64_t count = 0;
    static_cast<void>(!::read(fd_.get(), &count, sizeof count));
  }

 private:
  Fd fd_;
};

}  // namespace weft::control
