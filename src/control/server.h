// The daemon's end of the control socket: takes connections, hands requests to handlers.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "control/call.h"
#include "control/waker.h"

namespace weft::control {

// Where a handler runs: on the socket's own thread, for one that never waits (it may keep the Call, and another thread
// answers it), or on a thread of its own.
enum class Runs : std::uint8_t { at_once, own_thread };
using Handler = std::function<void(const std::shared_ptr<Call>&)>;

struct ServerOptions {
  mode_t mode = 0666;  // of the socket: each handler looks at who asks
  // Called by any thread when a request has ended: its name ("other" for unknown ones), how long it took, whether it
  // failed.
  std::function<void(std::string_view, std::chrono::nanoseconds, bool)> observe = {};
};

// Threads: one of its own, and one for each request whose handler has its own.
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
  class Tally;
  class Loop;
  Server(std::string path, Fd listener, ServerOptions options);
  Status take(const std::shared_ptr<Connection>& connection, Message message);
  Status begin(const std::shared_ptr<Connection>& connection, Message request);
  void run(const Route& route, std::shared_ptr<Call> call);

  const std::string path_;
  Fd listener_;
  const ServerOptions options_;
  std::map<std::string, Route, std::less<>> routes_;
  const std::shared_ptr<Tally> tally_;
  const std::shared_ptr<const Waker> waker_;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> cancel_all_ = false;
  std::atomic<bool> ending_ = false;
  std::atomic<std::size_t> connection_count_ = 0;
  std::thread thread_;
};

}  // namespace weft::control
