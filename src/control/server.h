// The daemon's end of the control socket: accepts connections and passes requests to handlers.
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
#include "base/user_shares.h"
#include "control/call.h"

namespace weft::control {

// The thread that runs a handler. at_once: the thread that receives from the connection. Such a handler must not wait,
// but may keep the Call for another thread to answer. own_thread: a thread for this request alone. Handlers of both
// kinds run concurrently.
enum class Runs : std::uint8_t { at_once, own_thread };
using Handler = std::function<void(const std::shared_ptr<Call>&)>;

struct ServerOptions {
  // Called by any thread before the answer to each request, with its name ("other" for unknown requests), its duration,
  // and true if it failed.
  std::function<void(std::string_view, std::chrono::nanoseconds, bool)> observe = {};
  // Longest time from the first to the last byte of a message. Then the server ends the connection.
  std::chrono::milliseconds message_patience = std::chrono::seconds(limits::kControlMessageSecondsMax);
  // Returns the credentials of a connection's client.
  std::function<Result<PeerCredentials>(int)> who = peer_credentials;
};

// Several threads wait for requests. An own_thread handler mostly runs on the thread that received its request, so that
// no other thread must be woken; other threads wait meanwhile.
class Server {
 public:
  // Listens at `path`. The caller holds the lock of the store's daemon, so that no other server listens there. Set all
  // handlers before start().
  static Result<std::unique_ptr<Server>> listen(const std::string& path, ServerOptions options);
  ~Server();  // closes all connections and waits for all handlers

  void on(const std::string& name, Runs runs, Handler handler);
  void start();
  std::size_t connections() const { return connection_count_; }

  // Stops accepting connections and requests. Waits `patience` for running requests, then cancels them and waits
  // `grace` more. False: some requests still run, and the destructor may wait for them without bound.
  bool drain(std::chrono::milliseconds patience, std::chrono::milliseconds grace);

 private:
  struct Route {
    Runs runs = Runs::own_thread;
    Handler handler;
  };
  // A request for an own_thread handler.
  struct Job {
    const Route* route = nullptr;
    std::shared_ptr<Call> call;
    std::shared_ptr<void> share;  // the user's share of running handlers, held until the handler returns
  };
  class Tally;
  class Loop;
  Server(std::string path, Fd listener, ServerOptions options);
  // Handles a message from `connection`. Appends to `jobs` the request for an own_thread handler, if it is one.
  Status take(const std::shared_ptr<Connection>& connection, Message message, std::vector<Job>& jobs);
  Status begin(const std::shared_ptr<Connection>& connection, Message request, std::vector<Job>& jobs);
  void queue(const Route& route, std::shared_ptr<Call> call, std::vector<Job>& jobs);

  const std::string path_;
  Fd listener_;
  const ServerOptions options_;
  std::map<std::string, Route, std::less<>> routes_;
  const std::shared_ptr<Tally> tally_;
  UserShares connections_of_, handlers_of_, descriptors_of_;  // each user's shares
  std::atomic<bool> draining_ = false;
  std::atomic<std::size_t> connection_count_ = 0;
  std::unique_ptr<Loop> loop_;  // null before start()
};

}  // namespace weft::control
