// A request, for its handler in the daemon.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "control/message.h"
#include "os/unix_socket.h"

namespace weft::control {

class Connection;

// Any thread may answer, also long after the handler has returned: the request is open as long as the Call lives. If
// the Call is destroyed without an answer, the request fails with Errc::internal.
class Call {
 public:
  // answers: called once, before the client gets the result; not for an abandoned request. gone: called by the
  // destructor. Either may be empty.
  struct Ends {
    std::function<void(bool failed)> answers;
    std::function<void()> gone;
  };
  Call(std::shared_ptr<Connection> connection, Message request, Ends ends);
  ~Call();

  const PeerCredentials& peer() const;
  const std::string& name() const { return request_.name; }
  const JsonValue& body() const { return request_.body; }
  std::vector<Fd> take_fds() { return std::move(request_.fds); }

  // True if the client has closed or cancelled, or if the daemon ends. Cheap enough to poll.
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // Waits until the request is cancelled, and returns true; false after `timeout`.
  bool wait_cancelled(std::chrono::milliseconds timeout);

  // Sends an event; `body` is the JSON of an object. Errc::cancelled: the request is cancelled or answered.
  // Errc::invalid: the event does not fit into a message.
  Status event(std::string_view body);
  // Sends an event that may be dropped, such as progress. Drops it while the client is slow to receive.
  void hint(std::string_view body);
  // Returns the client's next reply to the events, in order. Errc::cancelled, Errc::timed_out.
  Result<Message> next(std::chrono::milliseconds timeout);

  // The first answer() or fail() ends the request; later calls do nothing.
  void answer(std::string_view body, std::vector<Fd> fds = {});
  void fail(const Error& error);
  // Ends the Call without an answer, because its id belongs to another request in flight.
  void abandon() { answered_ = true; }

  // Called by the thread that receives from the connection.
  void deliver(Message more);
  void cancel();

 private:
  bool end(bool failed);
  const std::shared_ptr<Connection> connection_;
  Message request_;
  const Ends ends_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> answered_ = false;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Message> more_;  // guarded by mutex_
  bool overrun_ = false;      // guarded by mutex_: the client sent more than limits::kControlUnreadMax
};

}  // namespace weft::control
