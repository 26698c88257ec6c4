#include "control/client.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <utility>

#include "base/unix_socket.h"

namespace weft::control {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kReadBytes = 64U << 10U;
constexpr auto kLook = std::chrono::milliseconds(50);          // how often options.cancelled is asked
constexpr auto kLongLook = std::chrono::milliseconds(60'000);  // else
constexpr auto kNoTime = std::chrono::milliseconds(0);
constexpr auto kSendPatience = std::chrono::seconds(30);    // for a daemon that does not take what we send
constexpr auto kCancelPatience = std::chrono::seconds(60);  // for its answer after a cancel

}  // namespace

// A request that waits for its answer.
class Client::Pending {
 public:
  explicit Pending(std::uint64_t id) : id_(id) {}
  std::uint64_t id() const { return id_; }

  void deliver(Message message) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    arrived_.notify_one();
  }
  std::optional<Message> next(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, timeout, [this] { return !messages_.empty(); })) return {};
    Message message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }

 private:
  const std::uint64_t id_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Message> messages_;  // guarded by mutex_
};

Client::Client(Fd socket, std::string path) : socket_(std::move(socket)), path_(std::move(path)) {
  thread_ = std::thread([this] { run(); });
}

Result<std::unique_ptr<Client>> Client::connect(const std::string& socket_path) {
  WEFT_TRY(Fd socket, connect_unix(socket_path));
  return std::unique_ptr<Client>(new Client(std::move(socket), socket_path));
}

Client::~Client() {
  end("closed");
  waker_.wake();
  thread_.join();
}

bool Client::lost() {
  const std::lock_guard lock(mutex_);
  return lost_.has_value();
}

void Client::run() {
  while (!lost()) {
    std::array<pollfd, 2> ready = {{{waker_.fd(), POLLIN, 0}, {socket_.get(), POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0 || ready[1].revents == 0) continue;
    if (Status status = receive(); !status.ok()) end(status.error().message);
  }
}

Status Client::receive() {
  std::vector<std::byte> bytes(kReadBytes);
  WEFT_TRY(Received received, receive_some(socket_.get(), bytes));
  if (received.end) return Error{Errc::unreachable, "it ended or closed the connection"};
  WEFT_CHECK(reader_.feed(std::span(bytes).first(received.bytes), std::move(received.fds)));
  for (;;) {
    WEFT_TRY(std::optional<Message> message, reader_.next());
    if (!message) return {};
    deliver(std::move(*message));
  }
}

void Client::deliver(Message message) {
  std::shared_ptr<Pending> pending;
  {
    const std::lock_guard lock(mutex_);
    const auto found = in_flight_.find(message.id);
    if (found == in_flight_.end()) return;  // given up
    pending = found->second;
  }
  pending->deliver(std::move(message));
}

void Client::end(const std::string& why) {
  std::map<std::uint64_t, std::shared_ptr<Pending>> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (!lost_) lost_ = why;
    waiting.swap(in_flight_);
  }
  ::shutdown(socket_.get(), SHUT_RDWR);
  for (const auto& [id, pending] : waiting) {
    Message message;
    message.kind = MessageKind::error;
    message.error = {Errc::unreachable, fmt::format("weftd at {} did not answer: {}", path_, why)};
    pending->deliver(std::move(message));
  }
}

Status Client::send(const Draft& draft, std::vector<Fd> fds) {
  WEFT_TRY(std::string frame, encode_message(draft));
  const std::lock_guard lock(send_mutex_);
  queue_.push(std::move(frame), std::move(fds));
  for (const auto until = Clock::now() + kSendPatience;;) {
    if (Status sent = queue_.flush(socket_.get()); !sent.ok())
      return Error{sent.error().code, fmt::format("weftd at {}: {}", path_, sent.error().message)};
    if (queue_.empty()) return {};
    if (Clock::now() > until) return Error{Errc::timed_out, fmt::format("weftd at {} takes nothing", path_)};
    wait_for(socket_.get(), POLLOUT, kLook);
  }
}

std::shared_ptr<Client::Pending> Client::begin() {
  const std::lock_guard lock(mutex_);
  if (lost_) return nullptr;
  auto pending = std::make_shared<Pending>(next_id_++);
  in_flight_.emplace(pending->id(), pending);
  return pending;
}

void Client::forget(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  in_flight_.erase(id);
}

Result<Answer> Client::call(std::string_view name, std::string_view body, std::vector<Fd> fds,
                            const CallOptions& options) {
  const std::shared_ptr<Pending> pending = begin();
  if (!pending) return Error{Errc::unreachable, fmt::format("weftd at {}: the connection is lost", path_)};
  const std::size_t fd_count = fds.size();
  Status sent = send({pending->id(), MessageKind::request, name, body, fd_count}, std::move(fds));
  Result<Answer> answer = sent.ok() ? converse(*pending, options) : Result<Answer>(std::move(sent).error());
  forget(pending->id());
  return answer;
}

Result<Answer> Client::converse(Pending& pending, const CallOptions& options) {
  const SendMore more = [&](std::string_view body, std::vector<Fd> fds) {
    const std::size_t count = fds.size();
    return send({pending.id(), MessageKind::more, {}, body, count}, std::move(fds));
  };
  auto give_up = [&] { static_cast<void>(send({pending.id(), MessageKind::cancel}, {})); };
  auto until = options.patience.count() > 0 ? Clock::now() + options.patience : Clock::time_point::max();
  bool cancelled = false;
  for (;;) {
    if (!cancelled && options.cancelled && options.cancelled()) {
      cancelled = true;
      until = std::min(until, Clock::now() + kCancelPatience);
      give_up();
    }
    const auto look = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    std::optional<Message> message = pending.next(std::clamp(look, kNoTime, options.cancelled ? kLook : kLongLook));
    if (!message && Clock::now() < until) continue;
    if (!message) {
      give_up();
      return Error{Errc::timed_out, fmt::format("weftd at {} did not answer in time", path_)};
    }
    if (message->kind == MessageKind::answer) return Answer{std::move(message->body), std::move(message->fds)};
    if (message->kind == MessageKind::error) return std::move(message->error);
    if (message->kind != MessageKind::event || !options.on_event) continue;
    if (Status taken = options.on_event(*message, more); !taken.ok()) {
      give_up();
      return std::move(taken).error();
    }
  }
}

Result<std::shared_ptr<Client>> Link::client() {
  const std::lock_guard lock(mutex_);
  if (client_ && !client_->lost()) return client_;
  client_.reset();
  if (Clock::now() < next_try_) return failure_;
  auto made = Client::connect(path_);
  if (made.ok()) return client_ = std::move(made).value();
  failure_ = std::move(made).error();
  next_try_ = Clock::now() + kLinkPause;
  return failure_;
}

}  // namespace weft::control
