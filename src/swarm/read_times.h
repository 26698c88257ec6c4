// How long the reads of a receiver's units take, and when a read is slow (the receiver then gives it up, if it
// matters). Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace weft {

class ReadTimes {
 public:
  // A slow read takes so long, and so many times as long as usual.
  static constexpr std::chrono::milliseconds kSlowRead{2'000};
  static constexpr int kSlowTimes = 4;

  // A read has ended, and its unit is verified and stored.
  void add(std::chrono::nanoseconds took) { usual_ = usual_.count() == 0 ? took : (usual_ * 7 + took) / 8; }

  // Returns how long after its begin a read is slow; nothing while no read has ended.
  std::optional<std::chrono::nanoseconds> slow_after() const {
    if (usual_.count() == 0) return std::nullopt;
    return std::max<std::chrono::nanoseconds>(kSlowRead, kSlowTimes * usual_);
  }

 private:
  std::chrono::nanoseconds usual_{0};  // 0: no read has ended
};

}  // namespace weft
