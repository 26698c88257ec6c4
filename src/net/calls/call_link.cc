#include "net/calls/call_link.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "os/bell.h"

namespace weft::net {
namespace {

// A thread that waits.
class WaitingThread final : public CallWaiter {
 public:
  void wake() override { bell_.ring(); }
  void wait(Deadline until) const { bell_.wait(until); }

 private:
  const Bell bell_;
};

// Returns this thread as a waiter: a thread waits for one call at a time. It is shared, because another thread may wake
// it after it has ended.
const std::shared_ptr<WaitingThread>& this_thread() {
  thread_local const auto waiter = std::make_shared<WaitingThread>();
  return waiter;
}

}  // namespace

CallLink::Outcome CallLink::call(std::span<const std::byte> request, CallWait& wait) {
  const std::uint64_t id = begin(this_thread());
  if (id == 0) return {};
  const Status sent = channel_.send(CallMessage{id, {request.begin(), request.end()}}, wait.deadline());
  std::optional<Outcome> outcome;
  if (!sent.ok()) outcome = Outcome{};
  wait.begin(Clock::now());
  while (!outcome) {
    outcome = poll(id, wait);
    if (!outcome) this_thread()->wait(wait.next());
  }
  forget(id);
  return std::move(*outcome);
}

std::uint64_t CallLink::begin(std::shared_ptr<CallWaiter> waiter) {
  const std::lock_guard lock(mutex_);
  if (lost_) return 0;
  if (waiting_.empty()) asked_ = Clock::now();
  const std::uint64_t id = next_call_++;
  waiting_[id].waiter = std::move(waiter);
  return id;
}

Status CallLink::send(std::uint64_t call, std::span<const std::byte> request) {
  return channel_.send(CallMessage{call, {request.begin(), request.end()}});
}

std::optional<CallLink::Outcome> CallLink::poll(std::uint64_t call, CallWait& wait) {
  std::unique_lock lock(mutex_);
  Waiting& waiting = waiting_.at(call);
  if (waiting.outcome) return std::move(waiting.outcome);
  if (lost_) return Outcome{};
  if (Clock::now() < wait.next()) return std::nullopt;
  if (is_silent()) return Outcome{};
  const bool is_new = wait.heard(std::max(gave_, waiting.queued));
  const bool over = Clock::now() >= wait.deadline();
  const AskMessage question{call, ++waiting.questions, false};
  lock.unlock();
  if (is_new && !wait.is_wanted()) return give_up(call, Errc::cancelled);
  if (over) return give_up(call, Errc::timed_out);
  static_cast<void>(channel_.send(question));
  wait.asked(Clock::now());
  return std::nullopt;
}

CallLink::Outcome CallLink::give_up(std::uint64_t call, Errc code) {
  done(call, 0);
  if (code == Errc::cancelled) return {End::failed, {}, {code, "peer " + channel_.node() + ": no longer wanted"}};
  return {End::failed, {}, {code, "peer " + channel_.node() + ": no answer in time"}};
}

void CallLink::forget(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(call);
  if (waiting_.empty()) silent_ = silence();
}

// Returns the time that calls have waited since the last sign of life. It includes calls that gave up earlier, so that
// a series of short calls detects a silent peer too.
CallLink::Clock::duration CallLink::silence() const {
  return silent_ + (Clock::now() - std::max(asked_, heard_));
}

// A live peer replies to each question at once, also if the call itself takes long.
bool CallLink::is_silent() const {
  const auto ends = channel_.transport().ends(channel_.peer());
  const bool may_have_restarted = !ends || ends != ends_;
  return silence() >= (may_have_restarted ? kRestartedAfter : kSilenceMax);
}

// If the message cannot be sent, the windows stay open until their lease ends.
void CallLink::done(std::uint64_t call, std::uint64_t read_bytes) {
  static_cast<void>(channel_.send(DoneMessage{call, read_bytes}));
}

Heard CallLink::receive(const FrameView& frame) {
  const auto payload = channel_.open(frame);
  if (!payload.ok()) return Heard::refused;
  {
    const std::lock_guard lock(mutex_);
    heard_ = Clock::now();
    silent_ = {};
  }
  if (frame.header.kind != FrameKind::message) return Heard::closed;
  const auto body = decode_body(*payload);
  return body.ok() && take(*body) ? Heard::good : Heard::refused;
}

bool CallLink::take(const CallBody& body) {
  if (const auto* answer = std::get_if<AnswerMessage>(&body))
    end_call(answer->id, {End::answered, *answer, {}});
  else if (const auto* failure = std::get_if<FailureMessage>(&body))
    end_call(failure->id, {End::failed, {}, failure->error});
  else if (const auto* known = std::get_if<KnownMessage>(&body))
    take(*known);
  else
    return false;  // a message that only callers send
  return true;
}

void CallLink::take(const KnownMessage& known) {
  std::shared_ptr<WindowLease> lease;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = leases_.find(known.id); found != leases_.end()) lease = found->second.lock();
    const auto waiting = waiting_.find(known.id);
    if (waiting != waiting_.end() && known.state == CallState::queued) waiting->second.queued = Clock::now();
  }
  if (lease && known.state == CallState::answered) return lease->renewed(known.number);
  if (lease) return lease->ended();
  if (known.state == CallState::unknown) end_call(known.id, {End::again, {}, {}});
}

// Sets the outcome of a call, unless its caller has given up or has an outcome: an answer may come twice.
void CallLink::end_call(std::uint64_t call, Outcome outcome) {
  std::shared_ptr<CallWaiter> waiter;
  {
    const std::lock_guard lock(mutex_);
    gave_ = Clock::now();
    const auto found = waiting_.find(call);
    if (found == waiting_.end() || found->second.outcome) return;
    found->second.outcome = std::move(outcome);
    waiter = found->second.waiter;
  }
  waiter->wake();
}

void CallLink::lose() {
  std::vector<std::shared_ptr<CallWaiter>> waiters;
  {
    const std::lock_guard lock(mutex_);
    lost_ = true;
    for (const auto& [call, waiting] : waiting_) waiters.push_back(waiting.waiter);
  }
  for (const auto& waiter : waiters) waiter->wake();
}

bool CallLink::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void CallLink::gave(std::uint64_t bytes) {
  read_bytes_ += bytes;
  const std::lock_guard lock(mutex_);
  heard_ = gave_ = Clock::now();
  silent_ = {};
}

Deadline CallLink::heard() const {
  const std::lock_guard lock(mutex_);
  return heard_;
}

std::uint64_t CallLink::failures() const {
  return channel_.transport().failures(channel_.peer());
}

std::shared_ptr<WindowLease> CallLink::lease(std::uint64_t call, Deadline called) {
  auto lease = std::make_shared<WindowLease>(called);
  const std::lock_guard lock(mutex_);
  leases_[call] = lease;
  return lease;
}

void CallLink::renew(std::uint64_t call, WindowLease& lease) {
  const auto now = Clock::now();
  if (lease.is_question_due(now)) static_cast<void>(channel_.send(AskMessage{call, lease.ask(now), true}));
}

void CallLink::drop_lease(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  leases_.erase(call);
}

}  // namespace weft::net
