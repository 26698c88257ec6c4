// How fast bytes arrive while they do: pauses in which nobody asks for any do not count. Not for several threads.
#pragma once

#include <chrono>
#include <cstdint>

namespace weft {

class RateMeter {
 public:
  using Clock = std::chrono::steady_clock;
  // `bytes` that were asked for at `begun` are here at `now`; of several transfers at once, in the order of `now`.
  void arrived(std::uint64_t bytes, Clock::time_point begun, Clock::time_point now);
  // Of the last stretches that took long enough to tell; 0: none did yet.
  std::uint64_t bytes_per_s() const { return static_cast<std::uint64_t>(rate_); }

 private:
  Clock::time_point begin_{};  // of the stretch that is measured
  Clock::time_point last_{};
  std::uint64_t bytes_ = 0;
  double rate_ = 0;
};

}  // namespace weft
