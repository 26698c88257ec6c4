// A program's end of the control socket. Any number of threads may have requests in flight over one client. It has no
// thread of its own: one of those that wait for answers receives for all.
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
  // Events, on the thread that calls. An Error gives the request up and is what call() returns.
  OnEvent on_event = {};
  // Polled. True: the daemon is told, and its answer waited for, which may be that it is done all the same.
  std::function<bool()> cancelled = {};
  std::chrono::milliseconds patience{
      0};  // for the answer; Errc::timed_out, and the daemon is told. 0: as long as it takes
  // The longest silence of the daemon. While the call waits, the client asks the daemon for signs of life.
  // Errc::timed_out. 0: for ever.
  std::chrono::milliseconds silence{0};
  // With `silence`: called about every second while the daemon lives. False: the caller wants the answer no longer,
  // which is Errc::cancelled at once.
  std::function<bool()> on_life = {};
};

class Client {
 public:
  // Errc::not_found: none has the store; Errc::unreachable: none answers now; Errc::permission.
  static Result<std::unique_ptr<Client>> connect(const std::string& socket_path);
  ~Client();  // no call() may be running
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // `body` is the JSON of an object, or empty. The daemon's error as it is; Errc::busy also when the daemon takes no
  // more connections of this user. Errc::unreachable when the connection is lost: whether the daemon did what was asked
  // is then not known.
  Result<Answer> call(std::string_view name, std::string_view body, std::vector<Fd> fds = {},
                      const CallOptions& options = {});
  bool lost();  // for good: connect anew; drops what has come and nobody waits for any more

  // A request whose answer is taken later, or never. One thread at a time.
  class Begun;
  // Null when it cannot be sent, or too many of these have no answer yet.
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
  MessageReader reader_;  // of the thread that receives
  std::mutex send_mutex_;
  SendQueue queue_;  // guarded by send_mutex_
  std::mutex mutex_;
  bool receiving_ = false;                       // guarded by mutex_, as all below: some thread is
  std::uint64_t next_id_ = 1;                    //
  std::map<std::uint64_t, Pending*> in_flight_;  //
  std::set<std::uint64_t> begun_;                // by begin(), also when nobody wants it any more
  std::optional<Error> lost_;                    //
  Clock::time_point heard_ = Clock::now();       // when the daemon last sent something
  Clock::time_point asked_for_life_{};           //
};

class Client::Begun {
 public:
  Begun(std::shared_ptr<Client> client, std::unique_ptr<Pending> pending);
  ~Begun();
  Begun(const Begun&) = delete;
  Begun& operator=(const Begun&) = delete;
  // As call(). Once.
  Result<Answer> take(const CallOptions& options = {});

 private:
  const std::shared_ptr<Client> client_;
  const std::unique_ptr<Pending> pending_;
};

// A client that is made when it is first needed, and anew after the daemon was away. Any thread.
class Link {
 public:
  explicit Link(std::string socket_path) : path_(std::move(socket_path)) {}
  // As Client::connect(). After a failure the next try is not made before kLinkPause is over; the failure is told
  // again.
  Result<std::shared_ptr<Client>> client();
  bool is_there();  // one that was made, and is not lost; makes none

 private:
  const std::string path_;
  std::mutex mutex_;
  std::shared_ptr<Client> client_;                    // guarded by mutex_
  Error failure_;                                     // guarded by mutex_
  std::chrono::steady_clock::time_point next_try_{};  // guarded by mutex_
};
inline constexpr auto kLinkPause = std::chrono::milliseconds(100);

}  // namespace weft::control
