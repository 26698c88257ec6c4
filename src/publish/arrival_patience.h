// How long an import waits for the bytes of files that arrive while it reads them (weft/arrival.h). The import holds
// its share of the memory meanwhile, and the client alone says what has arrived.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ratio>

#include "base/time_source.h"
#include "weft/deadline.h"

namespace weft {

// One thread.
class ArrivalPatience {
 public:
  // The longest wait without news. A pull gives up its hub before that.
  static constexpr auto kLongest = std::chrono::hours(1);
  // Slower news use up the patience, faster ones renew it.
  static constexpr std::uint64_t kBytesPerSecondMin = 16U << 10U;

  static constexpr std::uint64_t kLongestSeconds = std::chrono::seconds(kLongest).count();

  explicit ArrivalPatience(const TimeSource& time = steady_time()) : time_(time) {}

  void begin() { begun_ = time_.now(); }  // of a wait; other time does not count
  // The wait has ended with so many new bytes, perhaps none. False: the patience is used up.
  bool end(std::uint64_t bytes) {
    const std::uint64_t counted = std::min(bytes, kLongestSeconds * kBytesPerSecondMin);
    const auto earned = std::chrono::nanoseconds(counted * std::nano::den / kBytesPerSecondMin);
    left_ = std::min<Deadline::duration>(left_ - (time_.now() - begun_) + earned, kLongest);
    return left_ > Deadline::duration::zero();
  }

 private:
  const TimeSource& time_;
  Deadline begun_{};
  Deadline::duration left_ = kLongest;
};

}  // namespace weft
