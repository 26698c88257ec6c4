#include "control/server_loop.h"

#include <sys/epoll.h>

#include <system_error>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"

namespace weft::control {
namespace {

constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // out of descriptors: others have to end first
constexpr std::uint64_t kListener = 1;                         // its name; connections have higher ones
constexpr unsigned kWaitingMax = 8;                            // threads that are kept for the next requests

}  // namespace

bool Server::Tally::handler_begins() {
  const std::lock_guard lock(mutex_);
  if (handlers_ >= static_cast<long>(limits::kControlRunningMax)) return false;
  ++handlers_;
  return true;
}

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
  next_name_ = kListener + 1;
  waiting_ = 1;
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

// It handles `first`, where there is one, before it waits. std::system_error: there can be no more threads.
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

// Somebody waits in its place. False: nobody can.
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

// False: enough others wait.
bool Server::Loop::come_back() {
  const std::lock_guard lock(mutex_);
  if (waiting_ >= kWaitingMax) return false;
  ++waiting_;
  return true;
}

// The last by this thread, the others by new ones.
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

// What is called has ended when its handler is said to have.
void Server::Loop::run(const Job& job) {
  if (!server_.tally_->handler_begins())
    return job.call->fail({Errc::busy, fmt::format("weftd: {} requests run already", limits::kControlRunningMax)});
  job.route->handler(job.call);
  server_.tally_->handler_ends();
}

void Server::Loop::serve(const Poller::Event& event, std::vector<Job>& jobs) {
  if (event.name == kListener) return accept();
  const auto connection = find(event.name);
  if (!connection) return;
  Status status = (event.events & EPOLLOUT) != 0 ? connection->flush() : Status();
  if (status.ok() && (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
    status = connection->receive([&](Message message) { return server_.take(connection, std::move(message), jobs); });
  if (status.ok()) return connection->arm();
  if (status.error().code != Errc::unreachable)
    log_warning("control socket: a connection of process {} (uid {}) is broken off: {}", connection->peer().pid,
                connection->peer().uid, printable(status.error().message));
  remove(connection);
}

void Server::Loop::accept() {
  while (accept_one()) {
  }
}

// False: no more now. Where there are too many, the next goes on when one has ended.
bool Server::Loop::accept_one() {
  const int listener = server_.listener_.get();
  {
    const std::lock_guard lock(mutex_);
    if (server_.draining_ || connections_.size() >= limits::kControlConnectionsMax) return false;
  }
  auto socket = accept_unix(listener);
  if (!socket.ok()) {
    log_warning("control socket: {}", socket.error().message);
    std::this_thread::sleep_for(kAcceptPause);
  }
  if (!socket.ok() || !socket->valid()) {
    poller_->arm(listener, kListener, EPOLLIN);
    return false;
  }
  auto peer = peer_credentials(socket->get());
  if (!peer.ok()) return true;
  const std::lock_guard lock(mutex_);
  const std::uint64_t name = next_name_++;
  auto made = std::make_shared<Connection>(std::move(socket).value(), std::move(peer).value(), poller_, name);
  if (!poller_->add(made->fd(), name)) return true;
  connections_.emplace(name, made);
  server_.connection_count_ = connections_.size();
  made->arm();
  return true;
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
  if (!server_.draining_) poller_->arm(server_.listener_.get(), kListener, EPOLLIN);
}

}  // namespace weft::control
