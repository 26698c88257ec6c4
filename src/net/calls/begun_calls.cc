#include "net/calls/begun_calls.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/limits.h"

namespace weft::net {
namespace {

using Clock = Deadline::clock;

// Pause before a request is sent again if too many messages are unsent. It doubles.
constexpr std::chrono::milliseconds kSendAgainMin{1};
constexpr std::chrono::milliseconds kSendAgainMax{64};

// All signs of life of a peer move the deadline of a begun call.
const OnSign& every_sign() {
  static const OnSign wanted = [] { return true; };
  return wanted;
}

}  // namespace

struct BegunCalls::Call final : CallWaiter, std::enable_shared_from_this<Call> {
  Call(BegunCalls& all, PeerAddress to, std::span<const std::byte> asked, Deadline now,
       std::chrono::milliseconds patience, CallDone report)
      : calls(all),
        peer(std::move(to)),
        request(asked.begin(), asked.end()),
        wait(now, now + patience, every_sign()),
        done(std::move(report)) {}
  void wake() override { calls.wake(shared_from_this()); }

  BegunCalls& calls;
  const PeerAddress peer;
  const std::vector<std::byte> request;
  CallWait wait;
  CallDone done;
  bool is_reserved = false;  // counts in begun_
  bool is_over = false;      // the outcome is known
  Deadline due{};            // the call's key in due_

  // The current try:
  int tries = 0;  // earlier ones
  bool is_connecting = false;
  std::optional<Result<std::shared_ptr<CallLink>>> connected;  // guarded by mutex_ of `calls`
  std::shared_ptr<CallLink> link;
  std::uint64_t id = 0;  // 0: not begun
  bool is_sent = false;
  Deadline called{};
  std::optional<Deadline> heard;  // the last sign of life, when the call was last looked at
  std::uint64_t failures = 0;     // attempts to connect that had failed by then
  std::chrono::milliseconds send_again = kSendAgainMin;

  // The outcome:
  std::optional<Error> error;
  AnswerMessage answer;
};

BegunCalls::BegunCalls(Outgoing& outgoing) : outgoing_(outgoing) {
  connectors_.emplace(kConnectingThreads);
  reporters_.emplace(kReportingThreads);
}

void BegunCalls::begin(const PeerAddress& peer, std::span<const std::byte> request, std::chrono::milliseconds patience,
                       CallDone done) {
  Status admitted = outgoing_.admit(peer, request);
  if (!admitted.ok()) return refuse(std::move(admitted).error(), std::move(done));
  add(std::make_shared<Call>(*this, peer, request, Clock::now(), patience, std::move(done)));
}

void BegunCalls::refuse(Error error, CallDone done) {
  constexpr std::chrono::milliseconds kNone{0};
  const auto call =
      std::make_shared<Call>(*this, PeerAddress{}, std::span<const std::byte>(), Clock::now(), kNone, std::move(done));
  call->error = std::move(error);
  add(call);
}

// Refused calls go to the thread as well: only there is a call reported.
void BegunCalls::add(const CallPtr& call) {
  bool is_first = false;
  bool is_late = false;
  {
    const MutexLock lock(mutex_);
    is_late = ending_;
    if (!is_late) {
      call->is_reserved = !call->error && reserve(call->peer.node);
      if (!call->is_reserved && !call->error)
        call->error = Error{Errc::busy, fmt::format("peer {}: too many calls wait for answers", call->peer.node)};
      woken_.push_back(call);
      is_first = !std::exchange(started_, true);
    }
  }
  if (is_late) return call->done(ended_error());
  if (is_first) worker_.start([this]() -> Result<Worker::Pause> { return round(); });
  worker_.wake();
}

void BegunCalls::wake(CallPtr call) {
  {
    const MutexLock lock(mutex_);
    if (ending_) return;
    woken_.push_back(std::move(call));
  }
  worker_.wake();
}

bool BegunCalls::reserve(const std::string& node) {
  if (begun_ >= limits::kBegunCallsMax) return false;
  std::size_t& each = begun_each_[node];
  if (each >= limits::kBegunCallsEachMax) return false;
  ++each;
  ++begun_;
  return true;
}

void BegunCalls::unreserve(const std::string& node) {
  const MutexLock lock(mutex_);
  const auto each = begun_each_.find(node);
  if (--each->second == 0) begun_each_.erase(each);
  --begun_;
}

Worker::Pause BegunCalls::round() {
  std::deque<CallPtr> calls;
  {
    const MutexLock lock(mutex_);
    calls.swap(woken_);
  }
  const Deadline now = Clock::now();
  for (auto at = due_.begin(); at != due_.end() && at->first <= now; ++at) calls.push_back(at->second);
  for (const CallPtr& call : calls) step(call);
  if (due_.empty()) return Worker::kUntilWoken;
  return std::max<Worker::Pause>(due_.begin()->first - Clock::now(), Worker::Pause::zero());
}

// Takes a call as far as it gets without waiting.
void BegunCalls::step(const CallPtr& call) {
  if (call->is_over) return;
  if (call->error) return end(call);
  if (!call->link && !find_link(call)) return;
  if (!call->is_sent && !send(call)) return;
  auto outcome = call->link->poll(call->id, call->wait);
  if (outcome) return take(call, *std::move(outcome));
  if (has_gone(*call)) return fail(call, outgoing_.gone(call->link));
  schedule(call, call->wait.next());
}

// True if attempts to connect to the peer have failed since its last sign of life. A caller that begins calls has other
// peers, so the call does not wait for the peer's return.
bool BegunCalls::has_gone(Call& call) {
  const Deadline heard = call.link->heard();
  const std::uint64_t failures = call.link->failures();
  if (std::exchange(call.heard, heard) != heard) call.failures = failures;
  return failures >= call.failures + kConnectsMax;
}

// Finds the session of a call. False: the call waits for a connection, or is over.
bool BegunCalls::find_link(const CallPtr& call) {
  auto found = call->is_connecting ? connection_of(call) : outgoing_.open_link(call->peer);
  if (!found.ok()) {
    fail(call, std::move(found).error());
    return false;
  }
  call->link = *std::move(found);
  if (call->link) return true;
  if (Clock::now() < call->wait.deadline())
    wait_for_connection(call);
  else
    fail(call, {Errc::timed_out, fmt::format("peer {}: no session in time", call->peer.node)});
  return false;
}

// Returns the session that connect() has made for a call, or its error; null if it has not ended yet.
Result<std::shared_ptr<CallLink>> BegunCalls::connection_of(const CallPtr& call) {
  const MutexLock lock(mutex_);
  if (!call->connected) return std::shared_ptr<CallLink>();
  call->is_connecting = false;
  return *std::exchange(call->connected, std::nullopt);
}

void BegunCalls::wait_for_connection(const CallPtr& call) {
  schedule(call, call->wait.deadline());
  if (std::exchange(call->is_connecting, true)) return;
  {
    const MutexLock lock(mutex_);
    const auto [waiting, is_first] = connecting_.try_emplace({call->peer.node, call->peer.address});
    waiting->second.push_back(call);
    if (!is_first) return;
  }
  connectors_->submit([this, peer = call->peer] { connect(peer); });
}

// Makes the session of the calls that wait for a connection to this peer. If all of them are over, makes none.
void BegunCalls::connect(const PeerAddress& peer) {
  const Place place{peer.node, peer.address};
  Deadline deadline{};
  {
    const MutexLock lock(mutex_);
    const auto waiting = connecting_.find(place);
    for (const CallPtr& call : waiting->second) deadline = std::max(deadline, call->wait.deadline());
    if (waiting->second.empty()) {
      connecting_.erase(waiting);
      return;
    }
  }
  const auto made = outgoing_.link_to(peer, deadline);
  {
    const MutexLock lock(mutex_);
    const auto waiting = connecting_.extract(place);
    for (const CallPtr& call : waiting.mapped()) {
      call->connected = made;
      if (!ending_) woken_.push_back(call);
    }
  }
  worker_.wake();
}

// Sends the request of a call. False: it waits until it can be sent, or the session is lost.
bool BegunCalls::send(const CallPtr& call) {
  if (call->id == 0) call->id = call->link->begin(call);
  call->called = Clock::now();
  const Status sent =
      call->id != 0 ? call->link->send(call->id, call->request) : Error{Errc::unreachable, "the session is lost"};
  if (sent.ok()) {
    call->wait.begin(Clock::now());
    call->is_sent = true;
  } else if (sent.error().code != Errc::busy) {
    take(call, {});
  } else if (Clock::now() >= call->wait.deadline()) {
    fail(call, {Errc::timed_out, fmt::format("peer {}: a request was not sent in time", call->peer.node)});
  } else {
    schedule(call, std::min(call->wait.deadline(), Clock::now() + call->send_again));
    call->send_again = std::min(2 * call->send_again, kSendAgainMax);
  }
  return call->is_sent;
}

// Ends a try of a call. If the session or the request was lost, the next try is due now.
void BegunCalls::take(const CallPtr& call, CallLink::Outcome outcome) {
  if (call->id != 0) call->link->forget(std::exchange(call->id, 0));
  if (outcome.end == CallLink::End::answered) {
    call->wait.answered(Clock::now());
    call->answer = std::move(outcome.answer);
    return end(call);
  }
  const auto link = std::exchange(call->link, nullptr);
  call->is_sent = false;
  call->heard.reset();
  call->error = outgoing_.failed(link, std::move(outcome), ++call->tries, call->wait.deadline());
  if (call->error) return end(call);
  schedule(call, Clock::now());
}

void BegunCalls::schedule(const CallPtr& call, Deadline time) {
  due_.erase({call->due, call});
  call->due = time;
  due_.insert({time, call});
}

void BegunCalls::fail(const CallPtr& call, Error error) {
  call->error = std::move(error);
  end(call);
}

// Ends a call, with its error or its answer.
void BegunCalls::end(const CallPtr& call) {
  call->is_over = true;
  due_.erase({call->due, call});
  if (call->id != 0) call->link->forget(std::exchange(call->id, 0));
  if (call->is_connecting) leave_connection(call);
  reporters_->submit([this, call] { report(call); });
}

void BegunCalls::leave_connection(const CallPtr& call) {
  std::optional<Result<std::shared_ptr<CallLink>>> unused;  // dropped without the mutex
  const MutexLock lock(mutex_);
  const auto waiting = connecting_.find({call->peer.node, call->peer.address});
  if (waiting != connecting_.end()) std::erase(waiting->second, call);
  unused.swap(call->connected);
}

void BegunCalls::report(const CallPtr& call) {
  const auto link = std::exchange(call->link, nullptr);
  auto answer = call->error ? Result<std::unique_ptr<Answer>>(*std::move(call->error))
                            : outgoing_.open_answer(link, std::move(call->answer), call->called, call->wait.deadline());
  if (call->is_reserved) unreserve(call->peer.node);
  std::exchange(call->done, nullptr)(std::move(answer));
}

void BegunCalls::cancel() {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(ending_, true)) return;
  }
  worker_.end();
  std::deque<CallPtr> calls;
  {
    const MutexLock lock(mutex_);
    calls.swap(woken_);
  }
  for (const auto& [time, call] : due_) calls.push_back(call);
  for (const CallPtr& call : calls)
    if (!call->is_over) fail(call, ended_error());
}

void BegunCalls::close() {
  cancel();
  connectors_.reset();
  reporters_.reset();
}

void BegunCalls::add_to(ExchangeFigures& figures) const {
  const MutexLock lock(mutex_);
  figures.begun += begun_;
}

}  // namespace weft::net
