#include "control/connection.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <memory>
#include <utility>

#include "base/limits.h"

namespace weft::control {
namespace {

constexpr std::size_t kReadBytes = 64U << 10U;
// Reads in a row from one connection, before other connections are served.
constexpr int kReadsAtOnce = 16;

}  // namespace

Status Connection::receive(const std::function<Status(Message)>& take) {
  const std::lock_guard lock(receiving_);
  if (over_) return {};
  bool whole = false;  // a whole message has arrived
  Status received = receive_now([&](Message message) {
    whole = true;
    return take(std::move(message));
  });
  over_ = !received.ok();
  const std::lock_guard now(mutex_);
  if (!reader_.has_part())
    part_since_.reset();
  else if (whole || !part_since_)
    part_since_ = Clock::now();
  return received;
}

Status Connection::receive_now(const std::function<Status(Message)>& take) {
  const auto bytes = std::make_unique_for_overwrite<std::byte[]>(kReadBytes);
  for (int i = 0; i < kReadsAtOnce; ++i) {
    WEFT_TRY(Received received, receive_some(fd(), {bytes.get(), kReadBytes}));
    if (received.end) return Error{Errc::unreachable, "closed by the client"};
    if (received.later) return {};
    reader_.feed({bytes.get(), received.bytes}, std::move(received.fds));
    for (;;) {
      WEFT_TRY(std::optional<Message> message, reader_.next());
      if (!message) break;
      WEFT_CHECK(take(std::move(*message)));
    }
    if (received.bytes < kReadBytes) return {};  // arm() reports later bytes
  }
  return {};
}

Status Connection::add(std::uint64_t id, const std::shared_ptr<Call>& call) {
  const std::lock_guard lock(mutex_);
  if (in_flight_.size() >= limits::kControlCallsMax)
    return Error{Errc::busy, fmt::format("expected at most {} requests in flight", limits::kControlCallsMax)};
  if (!in_flight_.emplace(id, call).second)
    return Error{Errc::exists, fmt::format("request {}: its number is in flight already", id)};
  return {};
}

std::shared_ptr<Call> Connection::find(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = in_flight_.find(id);
  return found == in_flight_.end() ? nullptr : found->second.lock();
}

Status Connection::flush() {
  const std::lock_guard lock(mutex_);
  return queue_.flush(fd());
}

// Also arms a connection after break_off(), so that the thread that gets the event sees the end.
void Connection::arm() {
  const std::lock_guard lock(mutex_);
  poller_->arm(fd(), name_, queue_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

void Connection::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  cancel_all();
}

void Connection::cancel_all() {
  std::vector<std::shared_ptr<Call>> calls;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, call] : in_flight_) calls.push_back(call.lock());
  }
  for (const auto& call : calls)
    if (call) call->cancel();
}

void Connection::forget(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  in_flight_.erase(id);
}

void Connection::send(std::string frame, std::vector<Fd> fds) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  queue_.push(std::move(frame), std::move(fds));
  const bool sent = queue_.flush(fd()).ok();
  if (sent && queue_.empty()) return;
  if (!sent || queue_.bytes() > limits::kControlQueueMax) end();
  poller_->arm(fd(), name_, EPOLLIN | EPOLLOUT);
}

void Connection::end() {
  closed_ = true;
  ::shutdown(fd(), SHUT_RDWR);
}

void Connection::break_off() {
  const std::lock_guard lock(mutex_);
  end();
}

std::optional<Connection::Clock::time_point> Connection::part_since() {
  const std::lock_guard lock(mutex_);
  return part_since_;
}

bool Connection::keeps_up() {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && !closed_;
}

}  // namespace weft::control
