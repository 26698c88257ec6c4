#include "pace/pace_gate.h"

#include <algorithm>
#include <chrono>

namespace weft {
namespace {

constexpr std::chrono::seconds kHeldLately{1};
constexpr std::chrono::milliseconds kLook{50};  // between two looks whether a piece that waits is still wanted

}  // namespace

std::string_view held_most(const PaceFigures& before, const PaceFigures& after, Traffic traffic) {
  std::string_view name;
  double longest = 0;
  for (std::size_t rate = 0; rate < kPaceRateNames.size(); ++rate) {
    const auto of = [&](const PaceFigures& figures) {
      return figures.waited_s.at(static_cast<std::size_t>(traffic)).at(rate);
    };
    if (of(after) - of(before) <= longest) continue;
    longest = of(after) - of(before);
    name = kPaceRateNames.at(rate);
  }
  return name;
}

void PaceGate::set(const PaceRates& rates) {
  {
    const MutexLock lock(mutex_);
    line_.set(rates);
    is_set_ = rates != PaceRates{};
  }
  changed_.notify_all();
}

bool PaceGate::holds(Traffic traffic, PaceEnd end) const {
  if (!is_set_.load(std::memory_order_relaxed)) return false;
  const MutexLock lock(mutex_);
  return line_.holds(traffic, end);
}

std::string_view PaceGate::held_by(Traffic traffic) const {
  if (!is_set_.load(std::memory_order_relaxed)) return {};
  const MutexLock lock(mutex_);
  const LastHeld& last = last_held_.at(static_cast<std::size_t>(traffic));
  if (last.at == Deadline{} || last.at + kHeldLately < time_.now()) return {};
  return kPaceRateNames.at(static_cast<std::size_t>(last.by));
}

PaceFigures PaceGate::figures() const {
  PaceFigures figures;
  {
    const MutexLock lock(mutex_);
    figures = figures_;
  }
  for (std::size_t traffic = 0; traffic < counts_.size(); ++traffic)
    for (std::size_t end = 0; end < counts_.at(traffic).size(); ++end) {
      figures.bytes.at(traffic).at(end) = counts_.at(traffic).at(end).bytes;
      figures.pieces.at(traffic).at(end) = counts_.at(traffic).at(end).pieces;
    }
  return figures;
}

Status PaceGate::Read::take_turn(std::uint64_t bytes, std::chrono::nanoseconds& held,
                                 const std::function<Status()>& stays) {
  if (may_go(bytes)) return {};
  const auto begun = Deadline::clock::now();
  Status turn;
  while (turn.ok() && !wait(bytes, deadline_in(kLook))) turn = stays();
  held += Deadline::clock::now() - begun;
  return turn;
}

bool PaceGate::pass(PacedRead& read, std::uint64_t bytes, Deadline until) {
  const auto traffic = static_cast<std::size_t>(read.traffic);
  if (is_set_.load(std::memory_order_relaxed)) {
    UniqueLock lock(mutex_);
    for (;;) {
      const Deadline now = time_.now();
      const auto held = line_.pass(read, bytes, now);
      if (!held) break;
      last_held_.at(traffic) = {held->by, now};
      if (now >= until) {
        line_.leave(read);  // a thread that is elsewhere must not hold up the line
        changed_.notify_all();
        return false;
      }
      time_.wait(changed_, lock, std::min(held->until, until));
      const Deadline after = time_.now();
      last_held_.at(traffic).at = after;
      figures_.waited_s.at(traffic).at(static_cast<std::size_t>(held->by)) +=
          std::chrono::duration<double>(after - now).count();
    }
    if (!line_.is_empty()) changed_.notify_all();
  }
  count(read, bytes);
  return true;
}

void PaceGate::owe(const PacedRead& read, std::uint64_t bytes) {
  if (is_set_.load(std::memory_order_relaxed)) {
    const MutexLock lock(mutex_);
    line_.owe(read, bytes, time_.now());
  }
  count(read, bytes);
}

void PaceGate::count(const PacedRead& read, std::uint64_t bytes) {
  if (bytes == 0) return;
  Counts& counts = counts_.at(static_cast<std::size_t>(read.traffic)).at(static_cast<std::size_t>(read.end));
  counts.bytes.fetch_add(bytes, std::memory_order_relaxed);
  counts.pieces.fetch_add(1, std::memory_order_relaxed);
}

void PaceGate::leave(const PacedRead& read) {
  if (read.since == Deadline{}) return;
  {
    const MutexLock lock(mutex_);
    line_.leave(read);
  }
  changed_.notify_all();
}

}  // namespace weft
