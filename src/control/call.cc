#include "control/call.h"

#include <fmt/core.h>

#include <utility>

#include "base/limits.h"
#include "control/connection.h"

namespace weft::control {
namespace {

Error not_wanted() {
  return Error{Errc::cancelled, "the request was given up"};
}

}  // namespace

Call::Call(std::shared_ptr<Connection> connection, Message request, Ends ends)
    : connection_(std::move(connection)), request_(std::move(request)), ends_(std::move(ends)) {}

Call::~Call() {
  if (!answered_) fail({Errc::internal, fmt::format("weftd: no answer to the request \"{}\"", name())});
  if (ends_.gone) ends_.gone();
}

const PeerCredentials& Call::peer() const {
  return connection_->peer();
}

bool Call::wait_cancelled(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return arrived_.wait_for(lock, timeout, [this] { return cancelled_.load(); });
}

Status Call::event(std::string_view body) {
  if (cancelled() || answered_) return not_wanted();
  WEFT_TRY(std::string frame, encode_message({request_.id, MessageKind::event, {}, body}));
  connection_->send(std::move(frame), {});
  return {};
}

void Call::hint(std::string_view body) {
  if (!connection_->keeps_up()) return;
  static_cast<void>(event(body));
}

Result<Message> Call::next(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const bool there = arrived_.wait_for(lock, timeout, [this] { return !more_.empty() || cancelled_ || overrun_; });
  if (cancelled_) return not_wanted();
  if (overrun_) return Error{Errc::invalid, fmt::format("{}: the client sent too much unread data", name())};
  if (!there) return Error{Errc::timed_out, fmt::format("{}: the client does not answer", name())};
  Message message = std::move(more_.front());
  more_.pop_front();
  return message;
}

bool Call::end(bool failed) {
  if (answered_.exchange(true)) return false;
  if (ends_.answers) ends_.answers(failed);
  connection_->forget(request_.id);
  return true;
}

void Call::answer(std::string_view body, std::vector<Fd> fds) {
  auto frame = encode_message({request_.id, MessageKind::answer, {}, body, fds.size()});
  if (!frame.ok()) return fail(frame.error());
  if (end(false)) connection_->send(std::move(frame).value(), std::move(fds));
}

void Call::fail(const Error& error) {
  if (!end(true)) return;
  connection_->send(encode_error(request_.id, error), {});
}

void Call::deliver(Message more) {
  {
    const std::lock_guard lock(mutex_);
    if (more_.size() < limits::kControlUnreadMax)
      more_.push_back(std::move(more));
    else
      overrun_ = true;
  }
  arrived_.notify_all();
}

void Call::cancel() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  arrived_.notify_all();
}

}  // namespace weft::control
