// The rate at which bytes arrive. Pauses without a request in flight do not count. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>

namespace weft {

class RateMeter {
 public:
  using Clock = std::chrono::steady_clock;
  // Records that `bytes`, requested at `begun`, arrived at `now`. Reads may overlap; calls are in the order of `now`.
  void arrived(std::uint64_t bytes, Clock::time_point begun, Clock::time_point now);
  // A moving average over stretches of at least kStretch; 0: none yet.
  std::uint64_t bytes_per_s() const { return static_cast<std::uint64_t>(rate_); }

 private:
  Clock::time_point begin_{};  // of the current stretch
  Clock::time_point last_{};
  std::uint64_t bytes_ = 0;
  double rate_ = 0;
};

}  // namespace weft
