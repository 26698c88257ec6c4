#include "http/connections.h"

#include <poll.h>

#include <algorithm>

#include "base/limits.h"
#include "os/unix_socket.h"

namespace weft {
namespace {

// A connection is not ended for a new client before it has waited so long: its request may be on the way.
constexpr std::chrono::milliseconds kSpared{100};
constexpr std::chrono::milliseconds kWithoutLimit{-1};

}  // namespace

void HttpConnections::enter(int socket, State state) {
  const std::uint64_t acknowledged = state == State::sending ? bytes_acknowledged(socket) : 0;
  const MutexLock lock(mutex_);
  Connection& connection = connections_[socket];
  connection = {state, time_.now(), acknowledged, connection.is_hung_up, {}};
}

void HttpConnections::accepted(int socket) {
  const MutexLock lock(mutex_);
  connections_.insert_or_assign(socket, Connection{State::accepted, time_.now(), 0, false, {}});
}

void HttpConnections::started(int socket) {
  enter(socket, State::receiving);
}

void HttpConnections::answering(int socket) {
  enter(socket, State::answering);
}

void HttpConnections::sending(int socket) {
  enter(socket, State::sending);
}

void HttpConnections::waiting(int socket) {
  const MutexLock lock(mutex_);
  Connection& connection = connections_[socket];
  connection.state = State::answering;
  connection.waiting = time_.now();
}

void HttpConnections::resumed(int socket) {
  const MutexLock lock(mutex_);
  Connection& connection = connections_[socket];
  connection.state = State::sending;
  connection.since += time_.now() - connection.waiting;
}

void HttpConnections::answered(int socket) {
  enter(socket, State::receiving);
}

void HttpConnections::ended(int socket) {
  const std::uint64_t bytes = bytes_written(socket);
  const MutexLock lock(mutex_);
  ended_.bytes += bytes;
  connections_.erase(socket);
}

// The socket is closed, and its number may be another file's now.
void HttpConnections::refused(int socket) {
  const MutexLock lock(mutex_);
  ++ended_.refused;
  connections_.erase(socket);
}

// The mutex keeps the sockets open: ended() of a connection comes before its socket is closed.
HttpCounts HttpConnections::counts() const {
  const MutexLock lock(mutex_);
  HttpCounts counts = ended_;
  counts.connections = connections_.size();
  for (const auto& [socket, connection] : connections_)
    if (connection.state != State::accepted) counts.bytes += bytes_written(socket);
  return counts;
}

bool HttpConnections::is_full() const {
  const MutexLock lock(mutex_);
  return connections_.size() >= max_;
}

std::chrono::milliseconds HttpConnections::tend(bool is_crowded) {
  const MutexLock lock(mutex_);
  const Deadline now = time_.now();
  // libmicrohttpd has closed such a socket without a report, for lack of memory. Its number may be another file's now.
  std::erase_if(connections_, [&](const auto& entry) {
    return entry.second.state == State::accepted && now - entry.second.since >= patience_;
  });
  for (auto& [socket, connection] : connections_) check(socket, connection, now);
  if (is_crowded) make_room(now);
  return pause(now, is_crowded);
}

void HttpConnections::check(int socket, Connection& connection, Deadline now) {
  if (connection.state == State::accepted || connection.state == State::answering) return;
  if (connection.is_hung_up || now - connection.since < patience_) return;
  if (connection.state == State::sending && takes_enough(socket, connection)) {
    connection.since = now;
    return;
  }
  ++ended_.slow;
  end(socket, connection);
}

bool HttpConnections::takes_enough(int socket, Connection& connection) const {
  const std::uint64_t before = connection.acknowledged;
  const auto milliseconds = static_cast<std::uint64_t>(patience_.count());
  connection.acknowledged = bytes_acknowledged(socket);
  return connection.acknowledged >= before + limits::kHttpBytesPerSecondMin * milliseconds / 1000;
}

void HttpConnections::make_room(Deadline now) {
  if (connections_.size() < max_) return;
  auto longest = connections_.end();
  for (auto it = connections_.begin(); it != connections_.end(); ++it) {
    const Connection& connection = it->second;
    if (connection.is_hung_up && connection.state != State::answering) return;  // its thread is about to end
    if (connection.is_hung_up || connection.state != State::receiving || now - connection.since < kSpared) continue;
    if (longest != connections_.end() && longest->second.since <= connection.since) continue;
    const bool has_sent = wait_for(it->first, POLLIN, std::chrono::milliseconds(0));
    if (!has_sent) longest = it;
  }
  if (longest == connections_.end()) return;
  ++ended_.crowded;
  end(longest->first, longest->second);
}

void HttpConnections::end(int socket, Connection& connection) {
  hang_up(socket);
  connection.is_hung_up = true;
}

// Threads of other connections begin waits that end a patience later: the next look is not after that.
std::chrono::milliseconds HttpConnections::pause(Deadline now, bool is_crowded) const {
  if (connections_.empty()) return kWithoutLimit;
  std::chrono::milliseconds pause = is_crowded ? kSpared : patience_;
  for (const auto& [socket, connection] : connections_) {
    if (connection.state == State::answering || connection.is_hung_up) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(connection.since + patience_ - now);
    pause = std::clamp(left, std::chrono::milliseconds(0), pause);
  }
  return pause;
}

}  // namespace weft
