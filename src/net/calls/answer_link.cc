#include "net/calls/answer_link.h"

#include <utility>

#include "base/limits.h"

namespace weft::net {

Status OpenWindows::open(Transport& transport, std::unique_ptr<WindowMemory> memory) {
  auto window = transport.open_window(memory->bytes());
  if (!window.ok() && memory->is_file()) {
    WEFT_TRY(memory, WindowMemory::of_bytes(memory->bytes()));
    window = transport.open_window(memory->bytes());
  }
  if (!window.ok()) return std::move(window).error();
  bytes_ += memory->bytes().size();
  windows_.push_back(std::move(*window));
  memory_.push_back(std::move(memory));
  return {};
}

std::vector<RemoteWindow> OpenWindows::remote() const {
  std::vector<RemoteWindow> out;
  for (const auto& window : windows_) out.push_back(window->remote());
  return out;
}

void OpenWindows::withdraw() {
  windows_.clear();
  for (const auto& memory : memory_) memory->withdraw();
  memory_.clear();
}

bool AnswerLink::begin(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  used_ = Clock::now();
  return !over_ && calls_.size() < limits::kPeerCallsEachMax && calls_.try_emplace(call).second;
}

std::optional<OpenWindows> AnswerLink::answered(std::uint64_t call, AnswerMessage answer, OpenWindows windows) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(call);
  if (found == calls_.end()) return windows;
  found->second = {std::move(answer), std::move(windows), true};
  return std::nullopt;
}

std::optional<OpenWindows> AnswerLink::end(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  used_ = Clock::now();
  auto ended = calls_.extract(call);
  if (ended.empty()) return std::nullopt;
  return std::move(ended.mapped().windows);
}

std::vector<OpenWindows> AnswerLink::end_all() {
  const std::lock_guard lock(mutex_);
  over_ = true;
  std::vector<OpenWindows> out;
  for (auto& [id, call] : calls_) out.push_back(std::move(call.windows));
  calls_.clear();
  return out;
}

CallBody AnswerLink::about(std::uint64_t call) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(call);
  if (found != calls_.end() && found->second.is_answered) return found->second.answer;
  return KnownMessage{call, found != calls_.end()};
}

AnswerLink::Clock::time_point AnswerLink::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace weft::net
