#include "net/calls/call_link.h"

#include <algorithm>
#include <utility>

namespace weft::net {
namespace {

constexpr double kNewest = 0.3;                        // weight of the newest sample in a moving average
constexpr std::uint64_t kRateBytesMin = 64ULL << 10U;  // smaller reads measure latency, not the rate

void average(double& value, double newest) {
  value = value == 0 ? newest : (1 - kNewest) * value + kNewest * newest;
}

// Returns this thread's bell: a thread waits for one call at a time. It is shared, because another thread may ring it
// after this thread has ended.
const std::shared_ptr<const Bell>& own_bell() {
  thread_local const std::shared_ptr<const Bell> bell = std::make_shared<const Bell>();
  return bell;
}

}  // namespace

CallLink::Outcome CallLink::call(std::span<const std::byte> request, Deadline& deadline, Clock::duration patience,
                                 const OnSign& on_sign) {
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
  const Status sent = channel_.send(CallMessage{id, {request.begin(), request.end()}}, deadline);
  Outcome outcome = sent.ok() ? wait(id, *waiting, deadline, patience, on_sign) : Outcome{};
  forget(id);
  return outcome;
}

CallLink::Outcome CallLink::wait(std::uint64_t call, Waiting& waiting, Deadline& deadline, Clock::duration patience,
                                 const OnSign& on_sign) {
  const auto begun = Clock::now();
  auto sign = begun;
  Clock::duration pause = kFirstSignAfter;
  std::unique_lock lock(mutex_);
  for (auto ask_at = begun + pause;; ask_at = Clock::now() + pause) {
    const auto until = std::min(deadline, ask_at);
    while (!waiting.outcome && !lost_ && Clock::now() < until) {
      lock.unlock();
      waiting.bell->wait(until);
      lock.lock();
    }
    if (waiting.outcome) return std::move(*waiting.outcome);
    if (lost_ || is_silent()) return {};
    const auto moved = std::max(gave_, waiting.queued);
    const bool is_new = on_sign && moved > sign;
    if (is_new) {
      sign = moved;
      deadline = std::max(deadline, moved + patience);
    }
    const bool over = Clock::now() >= deadline;
    const AskMessage question{call, ++waiting.questions, false};
    lock.unlock();
    if (is_new && !on_sign()) return give_up(call, Errc::cancelled);
    if (over) return give_up(call, Errc::timed_out);
    static_cast<void>(channel_.send(question));
    pause = std::min<Clock::duration>(2 * pause, kSignEvery);
    lock.lock();
  }
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
  std::shared_ptr<const Bell> bell;
  {
    const std::lock_guard lock(mutex_);
    gave_ = Clock::now();
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

void CallLink::gave() {
  const std::lock_guard lock(mutex_);
  heard_ = gave_ = Clock::now();
  silent_ = {};
}

Deadline CallLink::heard() const {
  const std::lock_guard lock(mutex_);
  return heard_;
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

void PeerRecord::answered(std::chrono::duration<double> after) {
  const std::lock_guard lock(mutex_);
  ++figures_.calls;
  ++figures_.answers;
  average(figures_.answer_ms, after.count() * 1e3);
}

void PeerRecord::failed() {
  const std::lock_guard lock(mutex_);
  ++figures_.calls;
  ++figures_.failures;
}

void PeerRecord::set_other_key(bool other_key) {
  const std::lock_guard lock(mutex_);
  figures_.other_key = other_key;
}

void PeerRecord::read(std::uint64_t bytes, std::chrono::duration<double> in) {
  const std::lock_guard lock(mutex_);
  figures_.read_bytes += bytes;
  if (bytes >= kRateBytesMin && in.count() > 0)
    average(figures_.read_bytes_per_second, static_cast<double>(bytes) / in.count());
}

PeerFigures PeerRecord::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

}  // namespace weft::net
