#include "control/client.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <utility>

#include "os/unix_socket.h"
#include "weft/deadline.h"

namespace weft::control {
namespace {

constexpr std::size_t kAnswerReadBytes = 64U << 10U;
constexpr auto kPoll = std::chrono::milliseconds(50);          // interval of calls of options.cancelled
constexpr auto kLongPoll = std::chrono::milliseconds(60'000);  // longest wait in one step without options.cancelled
constexpr auto kNoTime = std::chrono::milliseconds(0);
constexpr auto kSendPatience = std::chrono::seconds(30);    // longest wait for a daemon that does not receive
constexpr std::size_t kBegunMax = 16;                       // begun requests; the socket buffers their answers
constexpr auto kCancelPatience = std::chrono::seconds(60);  // longest wait for the answer after a cancel

}  // namespace

// A request that waits for its answer. Guarded by the client's mutex_.
struct Client::Pending {
  std::uint64_t id = 0;
  std::condition_variable changed;  // a message has arrived, or the caller must receive for all
  bool waits = false;               // the caller waits on `changed`
  std::deque<Message> messages;
};

Result<std::unique_ptr<Client>> Client::connect(const std::string& socket_path) {
  WEFT_TRY(Fd socket, connect_unix(socket_path));
  return std::unique_ptr<Client>(new Client(std::move(socket), socket_path));
}

Client::~Client() = default;

// Polls the socket if no caller is receiving: then no caller has seen the connection end.
bool Client::lost() {
  std::unique_lock lock(mutex_);
  if (!lost_ && !receiving_) receive_until(lock, nullptr, Clock::now());
  return lost_.has_value();
}

std::optional<Message> Client::next(Pending& pending, std::chrono::milliseconds timeout) {
  const auto until = Clock::now() + timeout;
  std::unique_lock lock(mutex_);
  while (pending.messages.empty() && Clock::now() < until) {
    if (!receiving_ && !lost_) {
      receive_until(lock, &pending, until);
      continue;
    }
    pending.waits = true;
    pending.changed.wait_until(lock, until);
    pending.waits = false;
  }
  if (pending.messages.empty()) return {};
  Message message = std::move(pending.messages.front());
  pending.messages.pop_front();
  return message;
}

// Receives for all callers until `pending` has a message, then hands over to another waiting caller.
void Client::receive_until(std::unique_lock<std::mutex>& lock, const Pending* pending, Clock::time_point until) {
  receiving_ = true;
  do {
    lock.unlock();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    Status status;
    if (wait_for(socket_.get(), POLLIN, std::max(left, kNoTime))) status = receive();
    if (!status.ok()) end(lost(status.error()));
    lock.lock();
  } while (!lost_ && pending != nullptr && pending->messages.empty() && Clock::now() < until);
  receiving_ = false;
  for (const auto& [id, other] : in_flight_)
    if (other->waits && other->messages.empty()) return other->changed.notify_one();
}

Status Client::receive() {
  const auto bytes = std::make_unique_for_overwrite<std::byte[]>(kAnswerReadBytes);
  WEFT_TRY(Received received, receive_some(socket_.get(), {bytes.get(), kAnswerReadBytes}));
  if (received.end) return Error{Errc::unreachable, "it ended or closed the connection"};
  {
    const std::lock_guard lock(mutex_);
    heard_ = Clock::now();
  }
  reader_.feed({bytes.get(), received.bytes}, std::move(received.fds));
  for (;;) {
    WEFT_TRY(std::optional<Message> message, reader_.next());
    if (!message) return {};
    if (message->kind == MessageKind::error && message->id == kConnectionId) return std::move(message->error);
    deliver(std::move(*message));
  }
}

void Client::deliver(Message message) {
  const std::lock_guard lock(mutex_);
  if (message.kind != MessageKind::event) begun_.erase(message.id);
  const auto found = in_flight_.find(message.id);
  if (found == in_flight_.end()) return;  // abandoned request
  found->second->messages.push_back(std::move(message));
  found->second->changed.notify_one();
}

// Returns the error of all calls on a lost connection. Errc::busy comes from the daemon: it accepts no more connections
// of this user, and executed nothing.
Error Client::lost(const Error& why) const {
  return {why.code == Errc::busy ? Errc::busy : Errc::unreachable,
          fmt::format("weftd at {} did not answer: {}", path_, why.message)};
}

void Client::end(const Error& why) {
  const std::lock_guard lock(mutex_);
  if (!lost_) lost_ = why;
  ::shutdown(socket_.get(), SHUT_RDWR);
  for (const auto& [id, pending] : std::exchange(in_flight_, {})) {
    Message message;
    message.kind = MessageKind::error;
    message.error = why;
    pending->messages.push_back(std::move(message));
    pending->changed.notify_one();
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
    wait_for(socket_.get(), POLLOUT, kPoll);
  }
}

Client::Clock::time_point Client::heard() {
  const std::lock_guard lock(mutex_);
  return heard_;
}

// Asks for a sign of life on behalf of all callers. No caller waits for the answer: any received byte counts.
void Client::ask_for_life() {
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (lost_ || now < std::max(heard_, asked_for_life_) + kSignEvery) return;
    asked_for_life_ = now;
    id = next_id_++;
  }
  static_cast<void>(send({id, MessageKind::request, kAliveRequest, "{}"}, {}));
}

bool Client::begin(Pending& pending) {
  const std::lock_guard lock(mutex_);
  if (lost_) return false;
  pending.id = next_id_++;
  in_flight_.emplace(pending.id, &pending);
  return true;
}

void Client::forget(const Pending& pending) {
  const std::lock_guard lock(mutex_);
  in_flight_.erase(pending.id);
}

Result<Answer> Client::call(std::string_view name, std::string_view body, std::vector<Fd> fds,
                            const CallOptions& options) {
  Pending pending;
  if (!begin(pending)) return Error{Errc::unreachable, fmt::format("weftd at {}: the connection is lost", path_)};
  const std::size_t fd_count = fds.size();
  Status sent = send({pending.id, MessageKind::request, name, body, fd_count}, std::move(fds));
  // If the daemon has closed the connection, converse() returns the error that the daemon sent before.
  const bool over = !sent.ok() && sent.error().code != Errc::unreachable;
  Result<Answer> answer = over ? Result<Answer>(std::move(sent).error()) : converse(pending, options);
  forget(pending);
  return answer;
}

std::unique_ptr<Client::Begun> Client::begin(const std::shared_ptr<Client>& client, std::string_view name,
                                             std::string_view body) {
  auto pending = std::make_unique<Pending>();
  if (!client->begin(*pending)) return nullptr;
  const std::uint64_t id = pending->id;
  auto begun = std::make_unique<Begun>(client, std::move(pending));
  {
    const std::lock_guard lock(client->mutex_);
    if (client->begun_.size() >= kBegunMax) return nullptr;
    client->begun_.insert(id);
  }
  if (!client->send({id, MessageKind::request, name, body}, {}).ok()) return nullptr;
  return begun;
}

Client::Begun::Begun(std::shared_ptr<Client> client, std::unique_ptr<Pending> pending)
    : client_(std::move(client)), pending_(std::move(pending)) {}

Client::Begun::~Begun() {
  client_->forget(*pending_);
}

Result<Answer> Client::Begun::take(const CallOptions& options) {
  return client_->converse(*pending_, options);
}

Result<Answer> Client::converse(Pending& pending, const CallOptions& options) {
  const SendMore more = [&](std::string_view body, std::vector<Fd> fds) {
    const std::size_t count = fds.size();
    return send({pending.id, MessageKind::more, {}, body, count}, std::move(fds));
  };
  auto give_up = [&] { static_cast<void>(send({pending.id, MessageKind::cancel}, {})); };
  auto until = options.patience.count() > 0 ? Clock::now() + options.patience : Clock::time_point::max();
  const auto begun = Clock::now();
  const bool asks = options.silence.count() > 0;
  const auto longest = options.cancelled ? kPoll : asks ? std::chrono::milliseconds(kSignEvery) : kLongPoll;
  bool cancelled = false;
  for (;;) {
    if (!cancelled && options.cancelled && options.cancelled()) {
      cancelled = true;
      until = std::min(until, Clock::now() + kCancelPatience);
      give_up();
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    std::optional<Message> message = next(pending, std::clamp(left, kNoTime, longest));
    const auto last = std::max(begun, heard());
    const bool silent = asks && Clock::now() >= last + options.silence;
    if (!message && Clock::now() < until && !silent) {
      if (asks) ask_for_life();
      if (!options.on_life || Clock::now() >= last + 2 * kSignEvery || options.on_life()) continue;
      give_up();
      return Error{Errc::cancelled, "no longer wanted"};
    }
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

bool Link::is_there() {
  const std::lock_guard lock(mutex_);
  return client_ && !client_->lost();
}

Result<std::shared_ptr<Client>> Link::client() {
  const std::lock_guard lock(mutex_);
  if (client_ && !client_->lost()) return client_;
  client_.reset();
  if (std::chrono::steady_clock::now() < next_try_) return failure_;
  auto made = Client::connect(path_);
  if (made.ok()) return client_ = std::move(made).value();
  failure_ = std::move(made).error();
  next_try_ = std::chrono::steady_clock::now() + kLinkPause;
  return failure_;
}

}  // namespace weft::control
