// Calls of other nodes. The transport's thread that receives a call also answers it, if another thread can receive in
// its place. Else a worker answers.
#include <fmt/core.h>

#include <utility>

#include "base/limits.h"
#include "net/calls/head_hash.h"
#include "net/calls/incoming.h"

namespace weft::net {
namespace {

Error too_much(std::string_view what) {
  return {Errc::busy, fmt::format("this node has too many {}", what)};
}

// Returns the answer's message with its head. A head that is too long for the message goes into the first window.
Result<AnswerMessage> place_head(std::uint64_t call, PeerReply& reply) {
  AnswerMessage answer;
  answer.id = call;
  if (reply.head.size() > kHeadBytesMax || reply.windows.size() > kAnswerWindowsMax)
    return Error{Errc::internal,
                 fmt::format("an answer of {} bytes and {} windows", reply.head.size(), reply.windows.size())};
  if (reply.head.size() + kWindowMessageBytes * reply.windows.size() <= kShortHeadBytesMax) {
    answer.head = std::move(reply.head);
    return answer;
  }
  WEFT_TRY(auto memory, WindowMemory::of_bytes(reply.head));
  answer.head_hash = head_hash(reply.head);
  reply.windows.insert(reply.windows.begin(), std::move(memory));
  return answer;
}

}  // namespace

Heard Incoming::hear(const LinkPtr& link, const FrameView& frame) {
  const auto payload = link->channel().open(frame);
  if (!payload.ok()) return Heard::refused;
  if (frame.header.kind != FrameKind::message) return Heard::closed;
  const auto body = decode_body(*payload);
  return body.ok() && take(link, *body) ? Heard::good : Heard::refused;
}

bool Incoming::take(const LinkPtr& link, const CallBody& body) {
  if (const auto* call = std::get_if<CallMessage>(&body))
    begin(link, *call);
  else if (const auto* ended = std::get_if<DoneMessage>(&body))
    done(link, *ended);
  else if (const auto* ask = std::get_if<AskMessage>(&body))
    static_cast<void>(link->channel().send(link->about(*ask, queue_moves())));
  else
    return false;  // a message that only the answering end sends
  return true;
}

void Incoming::begin(const LinkPtr& link, const CallMessage& call) {
  if (++calls_ <= limits::kPeerCallsMax && link->begin(call.id)) return submit(link, call);
  --calls_;
  ++busy_;
  static_cast<void>(link->channel().send(FailureMessage{call.id, too_much("calls to answer")}));
}

// Starts the work without mutex_, because the woken thread would wait for it.
void Incoming::submit(const LinkPtr& link, const CallMessage& call) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    ++submitting_;
  }
  const auto work = [this, link, call] {
    moved_at_ = Clock::now();
    answer(link, call);
    --calls_;
  };
  const auto work_here = [this, work] {
    work();
    submitted();
  };
  if (transport_.after_receiving(work_here)) return;
  workers_->submit(work);
  submitted();
}

// False if all workers have been at the same calls for long, such as reads of a disk that hangs: a call that waits for
// them says no more of this node's life than theirs do.
bool Incoming::queue_moves() const {
  return Clock::now() - moved_at_.load() < kQueueStandsMax;
}

void Incoming::submitted() {
  const std::lock_guard lock(mutex_);
  if (--submitting_ == 0 && ending_) wake_.notify_all();
}

void Incoming::answer(const LinkPtr& link, const CallMessage& call) {
  link->work(call.id);
  if (server_ == nullptr) return fail(link, call.id, {Errc::not_found, "this node answers no calls"});
  const auto owed = std::make_shared<OwedReply>(gate_, link->channel().number(), call.id);
  server_->receive(link->channel().node(), call.request, PendingReply(owed));
  if (auto given = owed->returned()) return reply(link, call.id, std::move(*given));
  keep_pending(link, *owed);
}

// Refuses the call if too many are pending. A call that has ended meanwhile is reported here, because end() and done()
// report only pending calls.
void Incoming::keep_pending(const LinkPtr& link, OwedReply& owed) {
  const Status kept = owed.count() ? link->wait(owed.call()) : too_much("requests that wait");
  if (kept.ok() || !owed.cancel()) return;
  if (kept.error().code == Errc::busy) fail(link, owed.call(), kept.error());
  report_unwanted(link->channel().node());
}

void Incoming::reply_later(std::shared_ptr<OwedReply> owed) {
  workers_->submit([this, owed = std::move(owed)] {
    moved_at_ = Clock::now();
    auto given = owed->take();  // dropped here if it is unwanted, while the exchange exists
    const LinkPtr link = find(owed->session());
    if (link && link->wants(owed->call())) reply(link, owed->call(), std::move(given));
  });
}

bool Incoming::wants(std::uint64_t session, std::uint64_t call) const {
  const LinkPtr link = find(session);
  return link && link->wants(call);
}

void Incoming::reply(const LinkPtr& link, std::uint64_t call, Result<PeerReply> reply) {
  if (!reply.ok()) return fail(link, call, std::move(reply).error());
  if (Status given = give(link, call, std::move(*reply)); !given.ok()) fail(link, call, std::move(given).error());
}

Status Incoming::give(const LinkPtr& link, std::uint64_t call, PeerReply reply) {
  WEFT_TRY(AnswerMessage answer, place_head(call, reply));
  WEFT_TRY(OpenWindows windows, windows_.open(std::move(reply.windows)));
  answer.windows = windows.remote();
  const bool lasts = windows.count() > 0;
  AnswerLink::Kept kept{std::move(windows), answer.head_hash ? answer.windows.front().length : 0,
                        std::move(reply.subject), std::exchange(reply.ended, nullptr)};
  if (auto unwanted = link->answered(call, answer, std::move(kept))) {
    windows_.release(std::move(unwanted->windows));
    return {};
  }
  if (lasts) lease(link, call, Clock::now() + kWindowLease);
  ++answers_;
  static_cast<void>(link->channel().send(answer, Clock::now() + kSilenceMax));
  if (!lasts) link->end(call);
  return {};
}

void Incoming::lease(const LinkPtr& link, std::uint64_t call, Clock::time_point until) {
  const std::lock_guard lock(mutex_);
  if (leases_.empty()) wake_.notify_all();  // otherwise the keeper wakes for an earlier end
  leases_.emplace(until, Lease{link, call});
}

void Incoming::fail(const LinkPtr& link, std::uint64_t call, Error error) {
  if (error.code == Errc::busy) ++busy_;
  static_cast<void>(link->channel().send(FailureMessage{call, std::move(error)}, Clock::now() + kSilenceMax));
  link->end(call);
}

void Incoming::done(const LinkPtr& link, const DoneMessage& done) {
  auto ended = link->end(done.id);
  if (ended && ended->was_pending) report_unwanted(link->channel().node());
  if (!ended) return;
  const std::uint64_t read_bytes = std::min(done.read_bytes, ended->kept.windows.bytes());
  served_bytes_ += read_bytes;
  if (ended->kept.windows.count() != 0) windows_.release(std::move(ended->kept.windows));
  report_ended(std::move(ended->kept), read_bytes);
}

void Incoming::report_unwanted(const std::string& node) {
  report([&node](Reports& reports) { reports.unwanted.insert(node); });
}

// `read_bytes`: of all windows.
void Incoming::report_ended(AnswerLink::Kept kept, std::uint64_t read_bytes) {
  if (!kept.ended) return;
  const std::uint64_t of_reply = read_bytes - std::min(read_bytes, kept.head_bytes);
  report([&](Reports& reports) {
    reports.ended.emplace_back([call = std::move(kept.ended), of_reply] { call(of_reply); });
  });
}

// Lets a worker tell the server, because the transport's thread must not. Once the exchange is ending, close() does.
void Incoming::report(const std::function<void(Reports&)>& add) {
  {
    const std::lock_guard lock(mutex_);
    const bool is_first = reports_.none();
    add(reports_);
    if (!is_first || ending_) return;
    ++submitting_;
  }
  workers_->submit([this] { tell_server(); });
  submitted();
}

void Incoming::tell_server() {
  Reports reports;
  {
    const std::lock_guard lock(mutex_);
    std::swap(reports, reports_);
  }
  for (const std::string& node : reports.unwanted) server_->unwanted(node);
  for (const auto& ended : reports.ended) ended();
}

}  // namespace weft::net
