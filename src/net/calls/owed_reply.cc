#include "net/calls/owed_reply.h"

#include "base/limits.h"
#include "net/calls/incoming.h"

namespace weft::net {
namespace {

// Calls a PeerReply::ended once; with 0 bytes when it is destroyed, if nothing else has called it.
class CalledOnce {
 public:
  explicit CalledOnce(ReplyEnded call) : call_(std::move(call)) {}
  ~CalledOnce() { (*this)(0); }
  CalledOnce(const CalledOnce&) = delete;
  CalledOnce& operator=(const CalledOnce&) = delete;

  void operator()(std::uint64_t read_bytes) {
    if (const auto call = std::exchange(call_, nullptr)) call(read_bytes);
  }

 private:
  ReplyEnded call_;
};

// Makes a reply end unread wherever it is dropped: unwanted, refused, or with the exchange.
void end_when_dropped(PeerReply& reply) {
  if (!reply.ended) return;
  const auto once = std::make_shared<CalledOnce>(std::exchange(reply.ended, nullptr));
  reply.ended = [once](std::uint64_t read_bytes) { (*once)(read_bytes); };
}

}  // namespace

void ReplyGate::enter(const std::function<void(Incoming&)>& use) {
  const SharedLock lock(mutex_);
  if (incoming_ != nullptr) use(*incoming_);
}

void ReplyGate::close() {
  const ExclusiveLock lock(mutex_);
  incoming_ = nullptr;
}

bool ReplyGate::count() {
  if (++pending_ <= limits::kPeerPendingMax) return true;
  --pending_;
  return false;
}

OwedReply::~OwedReply() {
  if (is_counted_) gate_->uncount();
}

void OwedReply::give(Result<PeerReply> reply) {
  if (reply.ok()) end_when_dropped(*reply);
  {
    const MutexLock lock(mutex_);
    if (state_ == State::given || state_ == State::over) return;
    reply_.emplace(std::move(reply));
    if (std::exchange(state_, State::given) == State::asked) return;  // the thread of receive() sends it
  }
  gate_->enter([this](Incoming& incoming) { incoming.reply_later(shared_from_this()); });
}

bool OwedReply::wanted() const {
  {
    const MutexLock lock(mutex_);
    if (state_ == State::given || state_ == State::over) return false;
  }
  bool wanted = false;
  gate_->enter([&](const Incoming& incoming) { wanted = incoming.wants(session_, call_); });
  return wanted;
}

std::optional<Result<PeerReply>> OwedReply::returned() {
  const MutexLock lock(mutex_);
  if (state_ == State::asked) {
    state_ = State::pending;
    return std::nullopt;
  }
  state_ = State::over;
  return std::exchange(reply_, std::nullopt);
}

bool OwedReply::count() {
  if (!gate_->count()) return false;
  is_counted_ = true;
  return true;
}

bool OwedReply::cancel() {
  const MutexLock lock(mutex_);
  if (state_ != State::pending) return false;
  state_ = State::over;
  return true;
}

Result<PeerReply> OwedReply::take() {
  const MutexLock lock(mutex_);
  state_ = State::over;
  return *std::exchange(reply_, std::nullopt);
}

}  // namespace weft::net
