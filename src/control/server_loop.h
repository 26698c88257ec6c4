// The threads of a Server. Each waits for an event of any socket, receives, and runs the handlers of the requests,
// while other threads wait for the next event.
#pragma once

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "control/connection.h"
#include "control/poller.h"
#include "control/server.h"
#include "os/sys.h"

namespace weft::control {
// A descriptor that becomes readable once, after a set time. Any thread.
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

// Counts requests, handlers and threads. Outlives the server.
class Server::Tally {
 public:
  void call_begins() { change(calls_, 1); }
  void call_ends() { change(calls_, -1); }
  void handler_begins() { change(handlers_, 1); }
  void handler_ends() { change(handlers_, -1); }
  void thread_begins() { change(threads_, 1); }
  void thread_ends() { change(threads_, -1); }
  bool wait_idle(std::chrono::milliseconds timeout);  // waits until no request and no handler is left
  void wait_threads();

 private:
  void change(long& count, long by);
  std::mutex mutex_;
  std::condition_variable changed_;
  long calls_ = 0;     // open requests; guarded by mutex_, as the next two
  long handlers_ = 0;  // running own_thread handlers
  long threads_ = 0;   // existing threads
};

class Server::Loop {
 public:
  explicit Loop(Server& server) : server_(server) {}
  void start();
  void stop_accepting();
  void cancel_all();
  void end();  // waits for all threads

 private:
  void begin_thread(Job first);
  void work(Job first);
  bool go_to_work();
  bool come_back();
  void run(std::vector<Job>& jobs);
  void run(const Job& job);
  void serve(const Poller::Event& event, std::vector<Job>& jobs);
  void accept();
  bool accept_one();
  void admit(Fd socket);
  void refuse(Fd socket, const PeerCredentials& peer);
  void warn(const PeerCredentials& peer, std::string_view why);
  void expect_rest();
  void end_unfinished();
  std::shared_ptr<Connection> find(std::uint64_t name);
  std::vector<std::shared_ptr<Connection>> all();
  void remove(const std::shared_ptr<Connection>& connection);

  Server& server_;
  const std::shared_ptr<const Poller> poller_ = std::make_shared<const Poller>();
  std::atomic<bool> ending_ = false;
  std::mutex mutex_;
  unsigned waiting_ = 0;  // waiting threads; guarded by mutex_, as all below
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections_;  // by name
  std::uint64_t next_name_ = 0;
  std::chrono::steady_clock::time_point next_warning_;  // no earlier warning about a connection is logged
  bool timer_set_ = false;
  const Timer timer_;  // expires when the oldest incomplete message is late, or earlier
};

}  // namespace weft::control
