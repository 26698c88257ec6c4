// The threads of a Server: each waits for any socket, receives from it, and handles what it received, while others wait
// in its place.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "control/connection.h"
#include "control/poller.h"
#include "control/server.h"
#include "control/timer.h"

namespace weft::control {

// What is going on. Outlives the server.
class Server::Tally {
 public:
  void call_begins() { change(calls_, 1); }
  void call_ends() { change(calls_, -1); }
  void handler_begins() { change(handlers_, 1); }
  void handler_ends() { change(handlers_, -1); }
  void thread_begins() { change(threads_, 1); }
  void thread_ends() { change(threads_, -1); }
  bool wait_idle(std::chrono::milliseconds timeout);  // for requests and handlers to end
  void wait_threads();

 private:
  void change(long& count, long by);
  std::mutex mutex_;
  std::condition_variable changed_;
  long calls_ = 0;     // guarded by mutex_, as the next two; requests that are not ended
  long handlers_ = 0;  // that run
  long threads_ = 0;   // that there are
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
  unsigned waiting_ = 0;                                              // guarded by mutex_, as all below: threads
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections_;  // by name
  std::uint64_t next_name_ = 0;
  std::chrono::steady_clock::time_point next_warning_;  // of a connection that the log may name
  bool timer_set_ = false;
  const Timer timer_;  // rings when the first message that is not whole is late
};

}  // namespace weft::control
