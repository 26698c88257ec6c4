// The daemon's end of the control socket: takes connections, hands requests to handlers.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "control/call.h"
#include "control/user_shares.h"

namespace weft::control {

// Where a handler runs: while its connection is received from, for one that never waits (it may keep the Call, and
// another thread answers it), or on a thread that does nothing else meanwhile. Several at once, either way.
enum class Runs : std::uint8_t { at_once, own_thread };
using Handler = std::function<void(const std::shared_ptr<Call>&)>;

struct ServerOptions {
  mode_t mode = 0666;  // of the socket: each handler looks at who asks
  // Called by any thread when a request has ended: its name ("other" for unknown ones), how long it took, whether it
  // failed.
  std::function<void(std::string_view, std::chrono::nanoseconds, bool)> observe = {};
  // For a message, from its first byte to its last; then its connection ends.
  std::chrono::milliseconds message_patience = std::chrono::seconds(limits::kControlMessageSecondsMax);
  // Who is at the other end of a connection.
  std::function<Result<PeerCredentials>(int)> who = peer_credentials;
};

// Threads: some that wait for requests, and one for each request whose handler has its own: mostly the one that
// received it, so that nobody has to be woken in between.
class Server {
 public:
  // The caller holds the lock that says that nobody else listens there. Handlers are set before start().
  static Result<std::unique_ptr<Server>> listen(const std::string& path, ServerOptions options);
  ~Server();  // ends all; waits for handlers
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void on(const std::string& name, Runs runs, Handler handler);
  void start();
  std::size_t connections() const { return connection_count_; }

  // Takes no more connections and requests; gives those that run `patience` to end, cancels them then, and gives them
  // `grace` more. False: some hang all the same, and this object cannot be destroyed in bounded time.
  bool drain(std::chrono::milliseconds patience, std::chrono::milliseconds grace);

 private:
  struct Route {
    Runs runs = Runs::own_thread;
    Handler handler;
  };
  // A request for a handler that has its own thread.
  struct Job {
    const Route* route = nullptr;
    std::shared_ptr<Call> call;
    std::shared_ptr<void> share;  // of the handlers that run, until it has ended
  };
  class Tally;
  class Loop;
  Server(std::string path, Fd listener, ServerOptions options);
  // From `connection`; what is to be run then is put behind `jobs`.
  Status take(const std::shared_ptr<Connection>& connection, Message message, std::vector<Job>& jobs);
  Status begin(const std::shared_ptr<Connection>& connection, Message request, std::vector<Job>& jobs);
  void queue(const Route& route, std::shared_ptr<Call> call, std::vector<Job>& jobs);

  const std::string path_;
  Fd listener_;
  const ServerOptions options_;
  std::map<std::string, Route, std::less<>> routes_;
  const std::shared_ptr<Tally> tally_;
  UserShares shares_;
  std::atomic<bool> draining_ = false;
  std::atomic<std::size_t> connection_count_ = 0;
  std::unique_ptr<Loop> loop_;  // once it has started
};

}  // namespace weft::control
