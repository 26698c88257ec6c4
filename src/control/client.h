// A program's end of the control socket. Any number of threads may have requests in flight over one client. The client
// has no thread: one of the callers that wait for answers receives for all.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "control/message.h"
#include "control/message_reader.h"
#include "control/send_queue.h"

namespace weft::control {

struct Answer {
  JsonValue body;  // an object
  std::vector<Fd> fds;
};

// Sends {"more"} messages of one request.
using SendMore = std::function<Status(std::string_view body, std::vector<Fd> fds)>;

using OnEvent = std::function<Status(Message& event, const SendMore& more)>;

struct CallOptions {
  // Called for each event, on the caller's thread. An Error cancels the request, and call() returns that error.
  OnEvent on_event = {};
  // Polled. If it returns true, the client cancels the request and waits for the answer: the daemon may have finished
  // the request before.
  std::function<bool()> cancelled = {};
  // Longest wait for the answer. Then the client cancels the request and returns Errc::timed_out. 0: no limit.
  std::chrono::milliseconds patience{0};
  // Longest silence of the daemon, else Errc::timed_out. During the wait the client asks the daemon for signs of life.
  // 0: no limit.
  std::chrono::milliseconds silence{0};
  // With `silence`: called about every second while the daemon lives. If it returns false, the client cancels the
  // request and returns Errc::cancelled at once.
  std::function<bool()> on_life = {};
};

class Client {
 public:
  // Errc::not_found: there is no socket, so no daemon has the store. Errc::unreachable: no daemon listens.
  // Errc::permission.
  static Result<std::unique_ptr<Client>> connect(const std::string& socket_path);
  ~Client();  // no call() may be running

  // Sends a request and returns the answer, or the daemon's error. `body` is the JSON of an object, or empty.
  // Errc::busy also if the daemon accepts no more connections of this user. Errc::unreachable if the connection is
  // lost: the daemon may have executed the request or not.
  Result<Answer> call(std::string_view name, std::string_view body, std::vector<Fd> fds = {},
                      const CallOptions& options = {});
  // True if the connection is lost for good: connect again. Also receives, and drops, answers of abandoned requests.
  bool lost();

  // A request in flight. The caller waits for the answer later, or drops it. One thread at a time.
  class Begun;
  // Sends a request without waiting for its answer. Null if it cannot be sent, or if too many begun requests have no
  // answer yet.
  static std::unique_ptr<Begun> begin(const std::shared_ptr<Client>& client, std::string_view name,
                                      std::string_view body);

 private:
  using Clock = std::chrono::steady_clock;
  struct Pending;
  Client(Fd socket, std::string path) : socket_(std::move(socket)), path_(std::move(path)) {}
  std::optional<Message> next(Pending& pending, std::chrono::milliseconds timeout);
  void receive_until(std::unique_lock<std::mutex>& lock, const Pending* pending, Clock::time_point until);
  Status receive();
  void deliver(Message message);
  Error lost(const Error& why) const;
  void end(const Error& why);
  Status send(const Draft& draft, std::vector<Fd> fds);
  Clock::time_point heard();
  void ask_for_life();
  bool begin(Pending& pending);  // false: the connection is lost
  void forget(const Pending& pending);
  Result<Answer> converse(Pending& pending, const CallOptions& options);

  const Fd socket_;
  const std::string path_;
  MessageReader reader_;  // used only by the receiving thread
  std::mutex send_mutex_;
  SendQueue queue_;  // guarded by send_mutex_
  std::mutex mutex_;
  bool receiving_ = false;  // a thread is receiving; guarded by mutex_, as all below
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Pending*> in_flight_;
  std::set<std::uint64_t> begun_;  // ids of begin() without an answer, abandoned ones included
  std::optional<Error> lost_;
  Clock::time_point heard_ = Clock::now();  // time of the daemon's last byte
  Clock::time_point asked_for_life_{};
};

class Client::Begun {
 public:
  Begun(std::shared_ptr<Client> client, std::unique_ptr<Pending> pending);
  ~Begun();
  // Waits for the answer, as call() does. Call at most once.
  Result<Answer> take(const CallOptions& options = {});

 private:
  const std::shared_ptr<Client> client_;
  const std::unique_ptr<Pending> pending_;
};

// Connects a Client on first use, and again after the connection was lost. Any thread.
class Link {
 public:
  explicit Link(std::string socket_path) : path_(std::move(socket_path)) {}
  // Returns the connected client, or the error of Client::connect(). For kLinkPause after a failure, returns the same
  // error without another attempt.
  Result<std::shared_ptr<Client>> client();
  bool is_there();  // true if a client is connected; does not connect

 private:
  const std::string path_;
  std::mutex mutex_;
  std::shared_ptr<Client> client_;                    // guarded by mutex_
  Error failure_;                                     // guarded by mutex_
  std::chrono::steady_clock::time_point next_try_{};  // guarded by mutex_
};
inline constexpr auto kLinkPause = std::chrono::milliseconds(100);

}  // namespace weft::control
