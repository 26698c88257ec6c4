#include "net/calls/answer_link.h"

#include <utility>

#include "base/limits.h"
#include "weft/deadline.h"

namespace weft::net {

bool AnswerLink::begin(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  used_ = Clock::now();
  return !over_ && calls_.size() < limits::kPeerCallsEachMax && calls_.try_emplace(call).second;
}

void AnswerLink::work(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  if (const auto found = calls_.find(call); found != calls_.end()) found->second.state = CallState::in_work;
}

std::optional<OpenWindows> AnswerLink::answered(std::uint64_t call, AnswerMessage answer, OpenWindows windows,
                                                std::string subject) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(call);
  if (found == calls_.end()) return windows;
  found->second = {CallState::answered, std::move(answer), std::move(windows), std::move(subject),
                   Clock::now() + kWindowLease};
  return std::nullopt;
}

std::optional<AnswerLink::Ended> AnswerLink::end(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  used_ = Clock::now();
  auto ended = calls_.extract(call);
  if (ended.empty()) return std::nullopt;
  return Ended{std::move(ended.mapped().windows), std::move(ended.mapped().subject)};
}

std::vector<OpenWindows> AnswerLink::end_all() {
  const std::lock_guard lock(mutex_);
  over_ = true;
  std::vector<OpenWindows> out;
  for (auto& [id, call] : calls_) out.push_back(std::move(call.windows));
  calls_.clear();
  return out;
}

CallBody AnswerLink::about(const AskMessage& question) {
  const std::lock_guard lock(mutex_);
  used_ = Clock::now();
  const auto found = calls_.find(question.id);
  if (found == calls_.end()) return KnownMessage{question.id, question.number, CallState::unknown};
  Call& call = found->second;
  if (call.state == CallState::answered) {
    call.open_until = used_ + kWindowLease;
    if (!question.has_answer) return call.answer;
  }
  return KnownMessage{question.id, question.number, call.state};
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
