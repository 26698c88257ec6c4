// The work of the progress thread on connections, between completions: callers, events, keep-alive, broken connections.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "net/transport/connections.h"
#include "weft/deadline.h"

namespace weft::net {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kWatches = 1;  // receives that fail, and so wake this thread, when their connection ends
constexpr auto kBetweenPolls = milliseconds(250);
// After this time a new attempt starts, without the growing pauses that TCP makes in the old one. Behind a full queue
// of a slow link an answer takes seconds.
constexpr auto kConnectMax = kSilenceMax / 2;
constexpr auto kPulseEvery = milliseconds(2'000);
constexpr auto kCallerSilenceMax = 2 * kSilenceMax;
constexpr auto kCallerConnectMax = kSilenceMax / 2;
constexpr auto kUnusedMax = milliseconds(10'000);  // a line without peers of the transport is kept for so long
constexpr auto kGoodAfter = milliseconds(1'000);   // a connection that was up for so long is replaced without a pause
constexpr auto kCompletionsMax = milliseconds(5'000);  // all completions of a closed connection are read within

}  // namespace

bool Connections::poll() {
  accept_callers();
  const auto now = Clock::now();
  const bool due = now >= polled_ + kBetweenPolls;
  const bool soon = new_ > 0;
  if (due || soon || std::exchange(events_due_, false)) read_events();
  if (due) {
    polled_ = now;
    poll_lines(now);
    poll_callers(now);
    while (!closed_.empty() && closed_.front()->since + kCompletionsMax < now) closed_.pop_front();
  }
  close_broken();
  return soon;
}

void Connections::accept_callers() {
  for (const InfoPtr& caller : listener_->take()) accept(*caller);
}

void Connections::accept(fi_info& caller) {
  if (!make_room()) return listener_->reject(caller);
  caller.tx_attr->size = 1;
  auto made = make(caller, nullptr);
  if (!made.ok()) return listener_->reject(caller);
  Connection& connection = **made;
  const auto* const address = static_cast<const std::byte*>(caller.dest_addr);
  if (address != nullptr) connection.caller.assign(address, address + caller.dest_addrlen);
  {
    const std::lock_guard lock(mutex_);
    callers_[connection.id] = std::move(*made);
  }
  owner_->receive_on(connection.id, receives_ ? kWatches : caller.rx_attr->size);
  if (fi_accept(connection.endpoint.get(), &connection.id, sizeof connection.id) == 0) return;
  listener_->reject(caller);
  const std::lock_guard lock(mutex_);
  break_off(connection);
}

// Makes room for another caller: if there are too many, closes the connection whose last message is the oldest. A peer
// would reconnect. False if too many callers are half open.
bool Connections::make_room() {
  const std::lock_guard lock(mutex_);
  if (half_open_ >= limits::kPeerConnectionsHalfOpenMax) return false;
  if (callers_.size() < limits::kPeerConnectionsMax) return true;
  const auto earlier = [](const auto& one, const auto& other) { return one.second->spoke < other.second->spoke; };
  break_off(*std::min_element(callers_.begin(), callers_.end(), earlier)->second);
  return true;
}

void Connections::read_events() {
  for (Event event; read_event(events_.get(), 0, event); event = {}) take(event);
}

void Connections::take(const Event& event) {
  ConnectionId up = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_endpoint_.find(event.endpoint);
    if (found == by_endpoint_.end()) return;
    Connection& connection = *found->second;
    if (event.kind == FI_SHUTDOWN) break_off(connection, event.failure);
    if (event.kind != FI_CONNECTED || connection.up) return;
    count_new(connection, -1);
    connection.up = true;
    connection.number = event.number;
    connection.since = connection.heard = connection.spoke = connection.pulsed = Clock::now();
    if (connection.line != nullptr) up = connection.id;
  }
  if (up != 0) owner_->receive_on(up, kWatches);
}

void Connections::poll_lines(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  for (auto entry = lines_.begin(); entry != lines_.end();) {
    Line& line = *entry->second;
    const bool unused = entry->second.use_count() == 1 && line.used + kUnusedMax < now && !line.dialling;
    if (line.connection && unused) break_off(*line.connection);
    if (line.connection && !line.dialling) keep_alive(*line.connection, now);
    entry = unused && !line.connection ? lines_.erase(entry) : std::next(entry);
  }
}

void Connections::keep_alive(Connection& connection, Clock::time_point now) {
  if (connection.broken) return;
  const auto waited = now - (connection.up ? std::max(connection.pulsed, connection.heard) : connection.since);
  if (!connection.up || connection.pulsing) {
    if (waited > (connection.up ? kSilenceMax : kConnectMax)) break_off(connection, FI_ETIMEDOUT);
    return;
  }
  if (now < connection.pulsed + kPulseEvery) return;
  const iovec no_bytes{&connection.pulse, 0};
  const fi_msg nothing{&no_bytes, nullptr, 1, FI_ADDR_UNSPEC, &connection.pulse, connection.number};
  // FI_DELIVERY_COMPLETE, because providers over TCP otherwise complete a send once the message is in a socket.
  const long failed =
      fi_sendmsg(connection.endpoint.get(), &nothing, FI_COMPLETION | FI_DELIVERY_COMPLETE | FI_REMOTE_CQ_DATA);
  connection.pulsing = failed == 0;
  if (failed == 0) connection.pulsed = now;
  if (failed != 0 && failed != -FI_EAGAIN) break_off(connection, static_cast<int>(-failed));
}

void Connections::poll_callers(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, caller] : callers_)
    if (now - caller->heard > (caller->up ? kCallerSilenceMax : kCallerConnectMax)) break_off(*caller);
}

// Closes broken connections, which ends their operations in flight.
void Connections::close_broken() {
  std::vector<std::unique_ptr<Connection>> broken;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(any_broken_, false)) return;
    const auto now = Clock::now();
    for (const auto& [address, line] : lines_) {
      if (line->connection && line->connection->broken && line->dialling) any_broken_ = true;
      if (!line->connection || !line->connection->broken || line->dialling) continue;
      const bool was_good = line->connection->up && line->connection->since + kGoodAfter < now;
      if (line->connection->up) ++line->ends;
      if (was_good) line->failures = 0;
      if (!was_good) rest(*line, line->connection->failure);
      broken.push_back(std::move(line->connection));
    }
    for (auto& [id, caller] : callers_)
      if (caller->broken) broken.push_back(std::move(caller));
    std::erase_if(callers_, [](const auto& entry) { return !entry.second; });
    for (const auto& connection : broken) drop(*connection);
  }
  for (auto& connection : broken) {
    connection->endpoint.reset();
    connection->since = Clock::now();
    closed_.push_back(std::move(connection));
  }
}

}  // namespace weft::net
