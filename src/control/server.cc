#include "control/server.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "control/connection.h"

namespace weft::control {
namespace {

constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // out of descriptors: others have to end first

}  // namespace

// What is going on: requests that are not ended, and threads that handle some. Outlives the server.
class Server::Tally {
 public:
  void call_begins() { change(calls_, 1); }
  void call_ends() { change(calls_, -1); }
  bool thread_begins() {
    const std::lock_guard lock(mutex_);
    if (threads_ >= static_cast<long>(limits::kControlRunningMax)) return false;
    ++threads_;
    return true;
  }
  void thread_ends() { change(threads_, -1); }
  bool wait_idle(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, timeout, [this] { return calls_ == 0 && threads_ == 0; });
  }
  void wait_threads() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return threads_ == 0; });
  }

 private:
  void change(long& count, long by) {
    const std::lock_guard lock(mutex_);
    count += by;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  long calls_ = 0;    // guarded by mutex_
  long threads_ = 0;  // guarded by mutex_
};

// The thread that accepts, receives, and sends what sockets did not take at once.
class Server::Loop {
 public:
  explicit Loop(Server& server) : server_(server) {}

  void run() {
    while (!server_.ending_) {
      const std::vector<pollfd> ready = wait();
      if (server_.cancel_all_)
        for (const auto& connection : connections_) connection->cancel_all();
      if (ready[1].revents != 0) accept();
      serve(ready);
      server_.connection_count_ = connections_.size();
    }
    for (const auto& connection : connections_) connection->close();
  }

 private:
  static constexpr std::size_t kFirstConnection = 2;

  std::vector<pollfd> wait() {
    const bool takes = !server_.draining_ && connections_.size() < limits::kControlConnectionsMax;
    std::vector<pollfd> all = {{server_.waker_->fd(), POLLIN, 0}, {takes ? server_.listener_.get() : -1, POLLIN, 0}};
    for (const auto& connection : connections_) {
      const int events = connection->has_to_send() ? POLLIN | POLLOUT : POLLIN;
      all.push_back({connection->fd(), static_cast<short>(events), 0});
    }
    if (::poll(all.data(), all.size(), -1) < 0)
      for (pollfd& entry : all) entry.revents = 0;
    if (all[0].revents != 0) server_.waker_->clear();
    return all;
  }

  void accept() {
    for (;;) {
      auto socket = accept_unix(server_.listener_.get());
      if (!socket.ok()) {
        log_warning("control socket: {}", socket.error().message);
        std::this_thread::sleep_for(kAcceptPause);
        return;
      }
      if (!socket->valid()) return;
      auto peer = peer_credentials(socket->get());
      if (peer.ok())
        connections_.push_back(
            std::make_shared<Connection>(std::move(socket).value(), std::move(peer).value(), server_.waker_));
      if (connections_.size() >= limits::kControlConnectionsMax) return;
    }
  }

  // `ready` has the connections that there were before accept().
  void serve(const std::vector<pollfd>& ready) {
    std::vector<std::shared_ptr<Connection>> over;
    for (std::size_t i = kFirstConnection; i < ready.size(); ++i) {
      const auto& connection = connections_[i - kFirstConnection];
      Status status = serve(connection, ready[i].revents);
      if (status.ok()) continue;
      if (status.error().code != Errc::unreachable)
        log_warning("control socket: a connection of process {} (uid {}) is broken off: {}", connection->peer().pid,
                    connection->peer().uid, printable(status.error().message));
      connection->close();
      over.push_back(connection);
    }
    std::erase_if(connections_, [&](const auto& one) { return std::ranges::find(over, one) != over.end(); });
  }

  Status serve(const std::shared_ptr<Connection>& connection, short events) {
    if ((events & POLLOUT) != 0) WEFT_CHECK(connection->flush());
    if ((events & (POLLIN | POLLHUP | POLLERR)) == 0) return {};
    return connection->receive([&](Message message) { return server_.take(connection, std::move(message)); });
  }

  Server& server_;
  std::vector<std::shared_ptr<Connection>> connections_;
};

Server::Server(std::string path, Fd listener, ServerOptions options)
    : path_(std::move(path)),
      listener_(std::move(listener)),
      options_(std::move(options)),
      tally_(std::make_shared<Tally>()),
      waker_(std::make_shared<const Waker>()) {}

Result<std::unique_ptr<Server>> Server::listen(const std::string& path, ServerOptions options) {
  WEFT_TRY(Fd listener, listen_unix(path, options.mode));
  return std::unique_ptr<Server>(new Server(path, std::move(listener), std::move(options)));
}

Server::~Server() {
  ending_ = true;
  waker_->wake();
  if (thread_.joinable()) thread_.join();
  tally_->wait_threads();
}

void Server::on(const std::string& name, Runs runs, Handler handler) {
  routes_[name] = {runs, std::move(handler)};
}

void Server::start() {
  thread_ = std::thread([this] { Loop(*this).run(); });
}

bool Server::drain(std::chrono::milliseconds patience, std::chrono::milliseconds grace) {
  draining_ = true;
  waker_->wake();
  static_cast<void>(remove_file(path_));
  if (tally_->wait_idle(patience)) return true;
  cancel_all_ = true;
  waker_->wake();
  return tally_->wait_idle(grace);
}

Status Server::take(const std::shared_ptr<Connection>& connection, Message message) {
  switch (message.kind) {
    case MessageKind::request:
      return begin(connection, std::move(message));
    case MessageKind::more:
      if (auto call = connection->find(message.id)) call->deliver(std::move(message));
      return {};
    case MessageKind::cancel:
      if (auto call = connection->find(message.id)) call->cancel();
      return {};
    default:
      return Error{Errc::invalid, "a control message: expected one to the daemon"};
  }
}

Status Server::begin(const std::shared_ptr<Connection>& connection, Message request) {
  const std::uint64_t id = request.id;
  const auto route = routes_.find(request.name);
  std::string name = route == routes_.end() ? "other" : request.name;
  tally_->call_begins();
  auto ended = [tally = tally_, observe = options_.observe, name,
                since = std::chrono::steady_clock::now()](const Call& call) {
    if (observe) observe(name, std::chrono::steady_clock::now() - since, call.failed());
    tally->call_ends();
  };
  auto call = std::make_shared<Call>(connection, std::move(request), std::move(ended));
  Status added = connection->add(id, call);
  if (!added.ok()) {
    call->abandon();
    return added;
  }
  if (route == routes_.end())
    call->fail({Errc::unsupported, fmt::format("weftd: no request \"{}\"", printable(call->name()))});
  else if (draining_)
    call->fail({Errc::unreachable, "weftd: it is ending"});
  else
    run(route->second, std::move(call));
  return {};
}

void Server::run(const Route& route, std::shared_ptr<Call> call) {
  if (route.runs == Runs::at_once) return route.handler(call);
  if (!tally_->thread_begins()) {
    call->fail({Errc::busy, fmt::format("weftd: {} requests run already", limits::kControlRunningMax)});
    return;
  }
  try {
    std::thread([tally = tally_, &route, call]() mutable {
      route.handler(call);
      call.reset();
      tally->thread_ends();
    }).detach();
  } catch (const std::system_error& error) {
    tally_->thread_ends();
    call->fail({Errc::busy, fmt::format("weftd: no thread for it: {}", error.what())});
  }
}

}  // namespace weft::control
