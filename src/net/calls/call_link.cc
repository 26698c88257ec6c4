#include "net/calls/call_link.h"

#include <algorithm>
#include <utility>

namespace weft::net {
namespace {

constexpr std::chrono::milliseconds kAskAfter{300};  // between a call, or the last question, and the next one
// Of silence, while a call waits: a peer that lives answers questions at once, also when its answer takes long.
constexpr std::chrono::milliseconds kLostAfter{1'500};
constexpr std::chrono::milliseconds kLostReading{4'000};  // behind bytes on a link that many share

// Of this thread: it waits for one call at a time. Who rings it may do so when the thread has ended.
const std::shared_ptr<const Bell>& own_bell() {
  thread_local const std::shared_ptr<const Bell> bell = std::make_shared<const Bell>();
  return bell;
}

}  // namespace

CallLink::Outcome CallLink::call(std::span<const std::byte> request, Deadline deadline) {
  std::uint64_t id = 0;
  Waiting* waiting = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (lost_) return {};
    if (waiting_.empty()) asked_ = Clock::now();
    id = next_call_++;
    waiting = &waiting_[id];
    waiting->bell = own_bell();
  }
  const Status sent =
      channel_.send(CallMessage{id, {request.begin(), request.end()}}, std::min(deadline, Clock::now() + kLostAfter));
  Outcome outcome = sent.ok() ? wait(id, *waiting, deadline) : Outcome{};
  forget(id);
  return outcome;
}

CallLink::Outcome CallLink::wait(std::uint64_t call, Waiting& waiting, Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (auto ask_at = Clock::now() + kAskAfter;; ask_at = Clock::now() + kAskAfter) {
    const auto until = std::min(deadline, ask_at);
    while (!waiting.outcome && !lost_ && Clock::now() < until) {
      lock.unlock();
      waiting.bell->wait(until);
      lock.lock();
    }
    if (waiting.outcome) return std::move(*waiting.outcome);
    const auto silence_max = reads_ > 0 ? kLostReading : kLostAfter;
    if (lost_ || silence() >= silence_max) return {};
    const bool over = Clock::now() >= deadline;
    lock.unlock();
    if (over) done(call, 0);
    if (over) return {End::failed, {}, {Errc::timed_out, "peer " + channel_.node() + ": no answer in time"}};
    static_cast<void>(channel_.send(AskMessage{call}));
    lock.lock();
  }
}

void CallLink::forget(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(call);
  if (waiting_.empty()) silent_ = silence();
}

// Also of calls that were given up before it was long enough: who makes none but short ones learns of it all the same.
CallLink::Clock::duration CallLink::silence() const {
  return silent_ + (Clock::now() - std::max(asked_, heard_));
}

// When it is not sent, the windows of the call stay open until their lease ends.
void CallLink::done(std::uint64_t call, std::uint64_t read_bytes) {
  static_cast<void>(channel_.send(DoneMessage{call, read_bytes}));
}

Heard CallLink::receive(const FrameView& frame) {
  const auto payload = channel_.open(frame);
  if (!payload.ok()) return Heard::refused;
  heard();
  if (frame.header.kind != FrameKind::message) return Heard::closed;
  const auto body = decode_body(*payload);
  return body.ok() && take(*body) ? Heard::good : Heard::refused;
}

bool CallLink::take(const CallBody& body) {
  if (const auto* answer = std::get_if<AnswerMessage>(&body))
    settle(answer->id, {End::answered, *answer, {}});
  else if (const auto* failure = std::get_if<FailureMessage>(&body))
    settle(failure->id, {End::failed, {}, failure->error});
  else if (const auto* known = std::get_if<KnownMessage>(&body); known == nullptr)
    return false;  // what only callers send
  else if (!known->known)
    settle(known->id, {End::again, {}, {}});
  return true;
}

// Nobody waits for a call that was given up: its end was said then, and an answer may come twice.
void CallLink::settle(std::uint64_t call, Outcome outcome) {
  std::shared_ptr<const Bell> bell;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(call);
    if (found == waiting_.end() || found->second.outcome) return;
    found->second.outcome = std::move(outcome);
    bell = found->second.bell;
  }
  bell->ring();
}

void CallLink::lose() {
  const std::lock_guard lock(mutex_);
  lost_ = true;
  for (const auto& [call, waiting] : waiting_) waiting.bell->ring();
}

bool CallLink::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void CallLink::heard() {
  const std::lock_guard lock(mutex_);
  heard_ = Clock::now();
  silent_ = {};
}

void CallLink::reading(int more) {
  const std::lock_guard lock(mutex_);
  reads_ += more;
}

}  // namespace weft::net
