#include "net/calls/answer_link.h"

#include <utility>

#include "base/limits.h"
#include "weft/deadline.h"

namespace weft::net {

bool AnswerLink::begin(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  used_ = Clock::now();
  return !over_ && calls_.size() - pending_ < limits::kPeerCallsEachMax && calls_.try_emplace(call).second;
}

void AnswerLink::work(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  if (const auto found = calls_.find(call); found != calls_.end()) found->second.state = CallState::in_work;
}

Status AnswerLink::wait(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(call);
  if (found == calls_.end() || found->second.state == CallState::answered)
    return Error{Errc::cancelled, "nobody waits for this reply"};
  if (pending_ >= limits::kPeerPendingEachMax)
    return Error{Errc::busy, "this node has too many requests of this peer that wait"};
  found->second.is_pending = true;
  ++pending_;
  return {};
}

bool AnswerLink::wants(std::uint64_t call) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(call);
  return found != calls_.end() && found->second.state != CallState::answered;
}

std::optional<AnswerLink::Kept> AnswerLink::answered(std::uint64_t call, AnswerMessage answer, Kept kept) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(call);
  if (found == calls_.end()) return kept;
  if (found->second.is_pending) --pending_;
  found->second = {CallState::answered, false, std::move(answer), std::move(kept), Clock::now() + kWindowLease};
  return std::nullopt;
}

std::optional<AnswerLink::Ended> AnswerLink::end(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  used_ = Clock::now();
  auto found = calls_.extract(call);
  if (found.empty()) return std::nullopt;
  return ended(std::move(found.mapped()));
}

std::vector<AnswerLink::Ended> AnswerLink::end_all() {
  const std::lock_guard lock(mutex_);
  over_ = true;
  std::vector<Ended> out;
  for (auto& [id, call] : calls_) out.push_back(ended(std::move(call)));
  calls_.clear();
  return out;
}

AnswerLink::Ended AnswerLink::ended(Call call) {
  if (call.is_pending) --pending_;
  return {std::move(call.kept), call.is_pending};
}

CallBody AnswerLink::about(const AskMessage& question, bool queue_moves) {
  const std::lock_guard lock(mutex_);
  used_ = Clock::now();
  const auto found = calls_.find(question.id);
  if (found == calls_.end()) return KnownMessage{question.id, question.number, CallState::unknown};
  Call& call = found->second;
  if (call.state == CallState::answered) {
    call.open_until = used_ + kWindowLease;
    if (!question.has_answer) return call.answer;
  }
  const bool stands = call.state == CallState::queued && !queue_moves;
  return KnownMessage{question.id, question.number, stands ? CallState::in_work : call.state};
}

std::optional<AnswerLink::Clock::time_point> AnswerLink::open_until(std::uint64_t call) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(call);
  return found == calls_.end() ? std::nullopt : std::optional(found->second.open_until);
}

AnswerLink::Clock::time_point AnswerLink::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace weft::net
