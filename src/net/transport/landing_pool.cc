#include "net/transport/landing_pool.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/limits.h"

namespace weft::net {
namespace {

// Pause between checks of the buffers set aside, because the end of their reads is not signalled.
constexpr std::chrono::milliseconds kPoll{20};

}  // namespace

Result<LandingBuffer> LandingPool::take(Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    reclaim();
    if (free_.empty() && may_make()) {
      WEFT_TRY(auto made, make());
      free_.push_back(std::move(made));
    }
    if (!free_.empty()) break;
    if (std::chrono::steady_clock::now() >= deadline)
      return Error{Errc::busy, "all buffers for what peers send are in use"};
    freed_.wait_until(lock, std::min(deadline, std::chrono::steady_clock::now() + kPoll));
  }
  auto buffer = std::move(free_.back());
  free_.pop_back();
  ++lent_;
  lock.unlock();
  std::shared_ptr<void> loan(buffer.get(), [pool = shared_from_this(), buffer](void*) { pool->give_back(buffer); });
  return LandingBuffer(std::move(buffer), std::move(loan));
}

void LandingPool::give_back(std::shared_ptr<Landing> buffer) {
  {
    const std::lock_guard lock(mutex_);
    --lent_;
    (buffer->idle() ? free_ : aside_).push_back(std::move(buffer));
  }
  freed_.notify_one();
}

void LandingPool::close() {
  const std::lock_guard lock(mutex_);
  free_.clear();
  aside_.clear();
}

std::size_t LandingPool::aside() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(aside_.begin(), aside_.end(), [](const auto& buffer) { return !buffer->idle(); }));
}

void LandingPool::reclaim() {
  const auto over = std::partition(aside_.begin(), aside_.end(), [](const auto& buffer) { return !buffer->idle(); });
  free_.insert(free_.end(), over, aside_.end());
  aside_.erase(over, aside_.end());
  while (!free_.empty() && free_.size() + lent_ > limits::kLandingBuffersMax) free_.pop_back();
}

bool LandingPool::may_make() const {
  return lent_ < limits::kLandingBuffersMax &&
         lent_ + aside_.size() < limits::kLandingBuffersMax + limits::kLandingBuffersAsideMax;
}

Result<std::shared_ptr<Landing>> LandingPool::make() {
  auto memory = std::make_shared<std::vector<std::byte>>(kLandingBufferBytes);
  const std::span<std::byte> bytes(*memory);
  return transport_.open_landing(bytes, std::move(memory));
}

}  // namespace weft::net
