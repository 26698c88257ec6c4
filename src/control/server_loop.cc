#include "control/server_loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"

namespace weft::control {
namespace {

constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // after a failed accept, as without free descriptors
constexpr std::uint64_t kListener = 1;                         // poller name; connections have larger ones
constexpr std::uint64_t kTimer = 2;
constexpr auto kWarningPause = std::chrono::seconds(1);  // between logged warnings about connections
constexpr unsigned kWaitingMax = 8;                      // idle threads kept for the next requests

}  // namespace

bool Server::Tally::wait_idle(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return calls_ == 0 && handlers_ == 0; });
}

void Server::Tally::wait_threads() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return threads_ == 0; });
}

void Server::Tally::change(long& count, long by) {
  const std::lock_guard lock(mutex_);
  count += by;
  changed_.notify_all();
}

void Server::Loop::start() {
  next_name_ = kTimer + 1;
  waiting_ = 1;
  poller_->add(timer_.fd(), kTimer);
  poller_->arm(timer_.fd(), kTimer, EPOLLIN);
  poller_->add(server_.listener_.get(), kListener);
  poller_->arm(server_.listener_.get(), kListener, EPOLLIN);
  begin_thread({});
}

void Server::Loop::stop_accepting() {
  poller_->remove(server_.listener_.get());
}

void Server::Loop::cancel_all() {
  for (const auto& connection : all()) connection->cancel_all();
}

void Server::Loop::end() {
  ending_ = true;
  poller_->end();
  for (const auto& connection : all()) connection->close();
  server_.tally_->wait_threads();
}

// Starts a thread. It runs `first`, unless that is empty, before it waits for events. Throws std::system_error if no
// thread can start.
void Server::Loop::begin_thread(Job first) {
  server_.tally_->thread_begins();
  try {
    std::thread([this, tally = server_.tally_, job = std::move(first)]() mutable {
      work(std::move(job));
      tally->thread_ends();
    }).detach();
  } catch (const std::system_error&) {
    server_.tally_->thread_ends();
    throw;
  }
}

void Server::Loop::work(Job first) {
  if (first.call) {
    run(first);
    first = {};
    if (!come_back()) return;
  }
  std::vector<Job> jobs;
  while (!ending_) {
    serve(poller_->wait(), jobs);
    if (jobs.empty()) continue;
    if (!go_to_work()) {
      for (const Job& job : jobs) job.call->fail({Errc::busy, "weftd: no thread for it"});
      jobs.clear();
      continue;
    }
    run(jobs);
    if (!come_back()) return;
  }
}

// Makes sure that another thread waits for events while this one runs handlers. False if no thread can start.
bool Server::Loop::go_to_work() {
  const std::lock_guard lock(mutex_);
  if (waiting_ > 1) {
    --waiting_;
    return true;
  }
  try {
    begin_thread({});
    return true;
  } catch (const std::system_error& error) {
    log_warning("control socket: no thread: {}", error.what());
    return false;
  }
}

// Counts this thread as waiting again. False if enough threads wait: this one ends.
bool Server::Loop::come_back() {
  const std::lock_guard lock(mutex_);
  if (waiting_ >= kWaitingMax) return false;
  ++waiting_;
  return true;
}

// Runs the first job on this thread, and the others on new threads.
void Server::Loop::run(std::vector<Job>& jobs) {
  while (jobs.size() > 1) {
    Job job = std::move(jobs.back());
    jobs.pop_back();
    const auto call = job.call;
    try {
      begin_thread(std::move(job));
    } catch (const std::system_error& error) {
      call->fail({Errc::busy, fmt::format("weftd: no thread for it: {}", error.what())});
    }
  }
  run(jobs.front());
  jobs.clear();
}

// Counts the handler as running until it has returned, also if it has answered earlier.
void Server::Loop::run(const Job& job) {
  static std::atomic<std::uint64_t> last = 0;
  const LogWork work(job.call->name(), ++last);
  server_.tally_->handler_begins();
  job.route->handler(job.call);
  server_.tally_->handler_ends();
}

void Server::Loop::serve(const Poller::Event& event, std::vector<Job>& jobs) {
  if (event.name == kListener) return accept();
  if (event.name == kTimer) return end_unfinished();
  const auto connection = find(event.name);
  if (!connection) return;
  Status status = (event.events & EPOLLOUT) != 0 ? connection->flush() : Status();
  if (status.ok() && (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
    status = connection->receive([&](Message message) { return server_.take(connection, std::move(message), jobs); });
  if (status.ok() && connection->part_since()) expect_rest();
  if (status.ok()) return connection->arm();
  if (status.error().code != Errc::unreachable) warn(connection->peer(), status.error().message);
  remove(connection);
}

// Makes the timer expire when the incomplete message is late, or earlier.
void Server::Loop::expect_rest() {
  const std::lock_guard lock(mutex_);
  if (!timer_set_) timer_.set(server_.options_.message_patience);
  timer_set_ = true;
}

// Ends the connections whose message is late, and sets the timer for the next one.
void Server::Loop::end_unfinished() {
  timer_.clear();
  const auto now = Connection::Clock::now();
  std::optional<Connection::Clock::duration> next;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, connection] : connections_) {
      const auto since = connection->part_since();
      if (!since) continue;
      const auto left = *since + server_.options_.message_patience - now;
      if (left <= Connection::Clock::duration::zero())
        connection->break_off();
      else
        next = next ? std::min(*next, left) : left;
    }
    if (next) timer_.set(*next);
    timer_set_ = next.has_value();
  }
  poller_->arm(timer_.fd(), kTimer, EPOLLIN);
}

// Accepts some connections, then returns, so that other events are handled.
void Server::Loop::accept() {
  for (std::size_t i = 0; i < limits::kControlAcceptsAtOnceMax; ++i)
    if (!accept_one()) break;
  if (!server_.draining_) poller_->arm(server_.listener_.get(), kListener, EPOLLIN);
}

// False if no connection is waiting, or after a failure.
bool Server::Loop::accept_one() {
  if (server_.draining_) return false;
  auto socket = accept_socket(server_.listener_.get());
  if (!socket.ok()) {
    log_warning("control socket: {}", socket.error().message);
    std::this_thread::sleep_for(kAcceptPause);
  }
  if (!socket.ok() || !socket->valid()) return false;
  admit(std::move(socket).value());
  return true;
}

void Server::Loop::admit(Fd socket) {
  auto peer = server_.options_.who(socket.get());
  if (!peer.ok()) return;
  auto share = server_.connections_of_.take(peer->uid);
  if (!share) return refuse(std::move(socket), *peer);
  const std::lock_guard lock(mutex_);
  const std::uint64_t name = next_name_++;
  auto made = std::make_shared<Connection>(std::move(socket), std::move(peer).value(), std::move(share), poller_, name);
  if (!poller_->add(made->fd(), name)) return;
  connections_.emplace(name, made);
  server_.connection_count_ = connections_.size();
  made->arm();
}

// Closes a connection with an error. It was accepted first, so that connections queued behind it do not wait.
void Server::Loop::refuse(Fd socket, const PeerCredentials& peer) {
  const std::string why = fmt::format("weftd: user {}, or all users, have too many connections", peer.uid);
  const std::string frame = encode_error(kConnectionId, {Errc::busy, why});
  static_cast<void>(send_some(socket.get(), std::as_bytes(std::span(frame))));
  warn(peer, why);
}

// Logs a warning, but at most one per kWarningPause, so that no user can fill the log with connections.
void Server::Loop::warn(const PeerCredentials& peer, std::string_view why) {
  const auto now = Connection::Clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (now < next_warning_) return;
    next_warning_ = now + kWarningPause;
  }
  log_warning("control socket: a connection of process {} (uid {}) is broken off: {}", peer.pid, peer.uid,
              printable(why));
}

std::shared_ptr<Connection> Server::Loop::find(std::uint64_t name) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(name);
  return found == connections_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Connection>> Server::Loop::all() {
  std::vector<std::shared_ptr<Connection>> out;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, connection] : connections_) out.push_back(connection);
  return out;
}

void Server::Loop::remove(const std::shared_ptr<Connection>& connection) {
  poller_->remove(connection->fd());
  {
    const std::lock_guard lock(mutex_);
    connections_.erase(connection->name());
    server_.connection_count_ = connections_.size();
  }
  connection->close();
}

}  // namespace weft::control
