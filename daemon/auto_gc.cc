#include "daemon/auto_gc.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace weft {
namespace {

constexpr std::size_t kHeldMax = 10'000;          // held versions; beyond, the oldest hold ends
constexpr std::chrono::seconds kLookAtSpace{10};  // between checks of space; a publisher can fill a disk in minutes
constexpr std::chrono::seconds kAgain{60};        // longest pause after a failed gc

}  // namespace

void AutoGc::start() {
  next_ = std::chrono::steady_clock::now() + actions_.delay();
  thread_ = std::thread([this] { run(); });
}

void AutoGc::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void AutoGc::removed(VersionId version, VersionHold hold) {
  const std::lock_guard lock(mutex_);
  held_.push_back({std::chrono::steady_clock::now() + actions_.delay(), version, std::move(hold)});
  if (held_.size() > kHeldMax) held_.pop_front();
  wake_.notify_all();
}

void AutoGc::collect_soon() {
  const std::lock_guard lock(mutex_);
  soon_ = true;
  wake_.notify_all();
}

std::deque<AutoGc::Held> AutoGc::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(held_, {});
}

HeldVersions AutoGc::held() {
  const std::lock_guard lock(mutex_);
  HeldVersions held;
  held.versions = held_.size();
  if (held_.empty()) return held;
  const auto left = held_.front().until - std::chrono::steady_clock::now();
  held.next_release = std::max(std::chrono::ceil<std::chrono::seconds>(left), std::chrono::seconds(0));
  return held;
}

void AutoGc::release() {
  take();
}

// A version that gc frees during `look` cannot be held again.
void AutoGc::look_without(const std::function<void()>& look) {
  std::deque<Held> all = take();
  for (Held& held : all) held.hold.reset();
  look();
  const std::lock_guard lock(mutex_);
  for (auto held = all.rbegin(); held != all.rend(); ++held) {
    auto again = actions_.hold(held->version);
    if (again.ok()) held_.push_front({held->until, held->version, *std::move(again)});
  }
}

// Ends expired holds, or all holds if space is short. True if gc should run.
bool AutoGc::due(Time now) {
  bool any = std::exchange(soon_, false) || now >= next_;
  if (!held_.empty() && actions_.space_is_short()) {
    held_.clear();
    any = true;
  }
  while (!held_.empty() && held_.front().until <= now) {
    held_.pop_front();
    any = true;
  }
  return any;
}

AutoGc::Time AutoGc::wake_at(Time now) const {
  return held_.empty() ? next_ : std::min({next_, held_.front().until, now + kLookAtSpace});
}

void AutoGc::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const Time now = std::chrono::steady_clock::now();
    if (!due(now)) {
      wake_.wait_until(lock, wake_at(now));
      continue;
    }
    lock.unlock();
    const Status done = actions_.collect([this] {
      const std::lock_guard stopping(mutex_);
      return stop_;
    });
    if (!done.ok()) log_info("gc: {}", done.error().message);
    lock.lock();
    next_ = std::chrono::steady_clock::now() + (done.ok() ? actions_.delay() : std::min(kAgain, actions_.delay()));
  }
}

}  // namespace weft
