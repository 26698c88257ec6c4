// Replies that the server of an exchange owes to peers, and may give after the exchange has ended.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "weft/cluster/exchange.h"

namespace weft::net {

class Incoming;

// The way from an owed reply to its Incoming, until that ends. Counts the pending replies. Any thread.
class ReplyGate {
 public:
  explicit ReplyGate(Incoming& incoming) : incoming_(&incoming) {}

  // Calls `use`, which is short, unless the Incoming has ended.
  void enter(const std::function<void(Incoming&)>& use);
  void close();  // waits for calls of enter()

  bool count();  // false: kPeerPendingMax replies are pending
  void uncount() { --pending_; }
  std::size_t pending() const { return pending_; }

 private:
  SharedMutex mutex_;
  Incoming* incoming_ WEFT_GUARDED_BY(mutex_);
  std::atomic<std::size_t> pending_{0};
};

// The reply to one call, from the request's way to the server until the reply is sent. Any thread.
class OwedReply final : public ReplyTaker, public std::enable_shared_from_this<OwedReply> {
 public:
  OwedReply(std::shared_ptr<ReplyGate> gate, std::uint64_t session, std::uint64_t call)
      : gate_(std::move(gate)), session_(session), call_(call) {}
  ~OwedReply() override;
  OwedReply(const OwedReply&) = delete;
  OwedReply& operator=(const OwedReply&) = delete;

  std::uint64_t session() const { return session_; }
  std::uint64_t call() const { return call_; }

  void give(Result<PeerReply> reply) override;  // a reply that is dropped later on has ended, and calls `ended`
  bool wanted() const override;

  // Called once, after PeerServer::receive(). Returns the reply if the server has given it. Otherwise it is pending: a
  // later give() passes this to Incoming::reply_later().
  std::optional<Result<PeerReply>> returned();
  bool count();              // counts this as pending while it lives; false: too many are pending
  bool cancel();             // makes a pending reply unwanted; false: it was given
  Result<PeerReply> take();  // the given reply, once

 private:
  enum class State : std::uint8_t { asked, pending, given, over };

  const std::shared_ptr<ReplyGate> gate_;
  const std::uint64_t session_;
  const std::uint64_t call_;
  std::atomic<bool> is_counted_{false};
  mutable Mutex mutex_;
  State state_ WEFT_GUARDED_BY(mutex_) = State::asked;
  std::optional<Result<PeerReply>> reply_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::net
