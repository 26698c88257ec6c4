#include "fuse/process/known_rights.h"

#include <algorithm>

namespace weft {
namespace {

constexpr std::chrono::minutes kAwayMax{1};  // a daemon without a socket: it restarts
constexpr unsigned kSecondBits = 31;

struct Answer {
  uid_t user = 0;
  bool may_publish = false;
  std::uint64_t second = 0;  // 0: no answer

  static Answer of(std::uint64_t word) {
    return {static_cast<uid_t>(word >> 32U), (word >> kSecondBits & 1U) != 0, word & ((1U << kSecondBits) - 1)};
  }
  std::uint64_t word() const { return std::uint64_t{user} << 32U | std::uint64_t{may_publish} << kSecondBits | second; }
  bool is_new(std::uint64_t now) const { return second != 0 && now <= second + std::chrono::seconds(kAwayMax).count(); }
};

std::uint64_t second_of(Deadline time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  return static_cast<std::uint64_t>(std::max<decltype(seconds)>(1, seconds));
}

}  // namespace

void KnownRights::note(uid_t user, bool may_publish, Deadline now) {
  std::atomic<std::uint64_t>* to = nullptr;
  std::uint64_t oldest = UINT64_MAX;
  for (auto& answer : words_.answers) {
    const Answer known = Answer::of(answer.load(std::memory_order_relaxed));
    const bool is_theirs = known.user == user && known.second != 0;
    if (!is_theirs && known.second >= oldest) continue;
    to = &answer;
    if (is_theirs) break;
    oldest = known.second;
  }
  to->store(Answer{user, may_publish, second_of(now)}.word(), std::memory_order_relaxed);
}

bool KnownRights::heard(Deadline now) const {
  return std::ranges::any_of(words_.answers, [second = second_of(now)](const auto& answer) {
    return Answer::of(answer.load(std::memory_order_relaxed)).is_new(second);
  });
}

bool KnownRights::may_publish(uid_t user, Deadline now) const {
  return std::ranges::any_of(words_.answers, [user, second = second_of(now)](const auto& answer) {
    const Answer known = Answer::of(answer.load(std::memory_order_relaxed));
    return known.user == user && known.may_publish && known.is_new(second);
  });
}

}  // namespace weft
