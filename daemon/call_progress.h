// Reports the progress of a request to its client.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

#include "control/call.h"
#include "weft/progress.h"

namespace weft {

// Sends at most ten events per second, and none while the client is slow to receive. Any thread.
class CallProgress final : public Progress {
 public:
  explicit CallProgress(control::Call& call) : call_(call) {}
  void total(std::uint64_t bytes) override;
  void advance(std::uint64_t bytes) override;
  void phase(std::string_view what) override;
  bool cancelled() const override { return call_.cancelled(); }

 private:
  using Clock = std::chrono::steady_clock;
  void tell();
  control::Call& call_;
  std::atomic<std::uint64_t> total_ = 0;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<Clock::rep> next_ = 0;
  std::mutex mutex_;
  std::string phase_;  // guarded by mutex_
};

}  // namespace weft
