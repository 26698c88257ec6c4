// A request as the daemon's handler has it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
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

// Any thread may answer, also long after the handler has returned: who keeps the Call keeps the request open. Dropped
// without an answer it fails as Errc::internal.
class Call {
 public:
  // `ended` is called once, when the Call goes, with what came of it.
  Call(std::shared_ptr<Connection> connection, Message request, std::function<void(const Call&)> ended);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const PeerCredentials& peer() const;
  const std::string& name() const { return request_.name; }
  const JsonValue& body() const { return request_.body; }
  std::vector<Fd> take_fds() { return std::move(request_.fds); }

  // The client has closed or cancelled, or the daemon ends. Cheap: to be polled.
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  // Called once by the thread that learns of it; at once where it is so already. Must not block.
  void on_cancel(std::function<void()> tell);

  // An event; bodies are the JSON of an object. Errc::cancelled when nobody wants it any more, Errc::invalid when it
  // does not fit into a message.
  Status event(std::string_view body, std::vector<Fd> fds = {});
  // The same, left out while the client does not keep up: progress.
  void hint(std::string_view body);
  // What the client sends in answer to events, in order. Errc::cancelled, Errc::timed_out.
  Result<Message> next(std::chrono::milliseconds timeout);

  // The first of these ends the request; later ones do nothing.
  void answer(std::string_view body, std::vector<Fd> fds = {});
  void fail(const Error& error);
  bool failed() const { return failed_; }
  // Nothing is answered: another request has this one's number.
  void abandon() { answered_ = true; }

  // From the connection's thread.
  void deliver(Message more);
  void cancel();

 private:
  bool end();
  const std::shared_ptr<Connection> connection_;
  Message request_;
  const std::function<void(const Call&)> ended_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> answered_ = false;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Message> more_;                 // guarded by mutex_
  bool overrun_ = false;                     // guarded by mutex_: more came than is kept
  std::vector<std::function<void()>> tell_;  // guarded by mutex_
};

}  // namespace weft::control
