// Which sockets have something to do: any number of threads wait, and each thing is told to one of them, which asks for
// the next by arm(). No thread has to be woken to wait in place of one that has gone to work. Any thread.
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

  // `name` is not 0. Nothing is told of it before arm().
  bool add(int fd, std::uint64_t name) const { return change(EPOLL_CTL_ADD, fd, name, 0); }
  // The next of these events is told, once; what is there already, now.
  void arm(int fd, std::uint64_t name, std::uint32_t events) const { change(EPOLL_CTL_MOD, fd, name, events); }
  void remove(int fd) const { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

  // Until there is something; an event without a name when there is not, or when it is over.
  Event wait() const {
    epoll_event event{};
    if (::epoll_wait(epoll_.get(), &event, 1, -1) != 1) return {};
    return {event.data.u64, event.events};
  }
  // All that wait return, now and from now on.
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
