// Reports events of sockets (epoll). Any number of threads wait. Each event goes to one of them, and arm() enables the
// next event of that socket. So a thread can work on an event without waking another thread first. Any thread.
#pragma once

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "os/bell.h"
#include "os/sys.h"

namespace weft::control {

class Poller {
 public:
  struct Event {
    std::uint64_t name = 0;
    std::uint32_t events = 0;
  };

  Poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{EPOLLIN, {.u64 = kOver}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, over_.fd(), &event);
  }

  // Adds a socket without events; arm() enables them. `name` is not 0.
  bool add(int fd, std::uint64_t name) const { return change(EPOLL_CTL_ADD, fd, name, 0); }
  // Enables one report of the next of these events. A pending event is reported at once.
  void arm(int fd, std::uint64_t name, std::uint32_t events) const { change(EPOLL_CTL_MOD, fd, name, events); }
  void remove(int fd) const { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

  // Waits for an event. Returns an event with name 0 after end(), or if a signal interrupts the wait.
  Event wait() const {
    epoll_event event{};
    if (::epoll_wait(epoll_.get(), &event, 1, -1) != 1) return {};
    return {event.data.u64, event.events};
  }
  // Makes all current and later calls of wait() return.
  void end() const { over_.ring(); }

 private:
  static constexpr std::uint64_t kOver = 0;
  bool change(int what, int fd, std::uint64_t name, std::uint32_t events) const {
    epoll_event event{events | EPOLLONESHOT, {.u64 = name}};
    return ::epoll_ctl(epoll_.get(), what, fd, &event) == 0;
  }

  Fd epoll_;
  const Bell over_;  // never cleared
};

}  // namespace weft::control
