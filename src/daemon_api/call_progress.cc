#include "daemon_api/call_progress.h"

#include "daemon_api/control_messages.h"

namespace weft {
namespace {

constexpr auto kProgressPause = std::chrono::milliseconds(100);

}  // namespace

void CallProgress::total(std::uint64_t bytes) {
  total_.store(bytes, std::memory_order_relaxed);
  tell();
}

void CallProgress::advance(std::uint64_t bytes) {
  done_.fetch_add(bytes, std::memory_order_relaxed);
  tell();
}

void CallProgress::phase(std::string_view what) {
  {
    const std::lock_guard lock(mutex_);
    phase_ = what;
  }
  tell();
}

void CallProgress::tell() {
  const Clock::rep now = Clock::now().time_since_epoch().count();
  Clock::rep next = next_.load(std::memory_order_relaxed);
  if (now < next || !next_.compare_exchange_strong(next, now + Clock::duration(kProgressPause).count())) return;
  ProgressEvent event{{}, total_.load(), done_.load(), std::string(rate_ ? rate_() : "")};
  {
    const std::lock_guard lock(mutex_);
    event.phase = phase_;
  }
  call_.hint(encode_fields(event));
}

}  // namespace weft
