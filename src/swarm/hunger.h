// When a receiver (swarm/downloads.h) is hungry: no unit of a partner came for kHungryAfter, or kHungryGaps times as
// long as usually. The caller asks only while the receiver lacks units that nobody has promised. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "swarm/swarm_types.h"

namespace weft {

class Hunger {
 public:
  static constexpr std::chrono::milliseconds kHungryAfter{100};
  static constexpr int kHungryGaps = 8;
  static constexpr std::chrono::milliseconds kGapMax{1'000};  // a longer gap is no usual one, and counts as this
  // A hungry receiver asks the directory for another partner at this interval, which doubles up to the longer one.
  static constexpr std::chrono::milliseconds kJoinAgain{500}, kJoinAgainMax{8'000};

  // The receiver lacks units from now on.
  void start(SwarmTime now) {
    ++spell_;
    last_unit_ = now;
    join_at_.reset();
    join_after_ = kJoinAgain;
  }
  // A unit of a partner came.
  void feed(SwarmTime now) {
    usual_gap_ = (usual_gap_ * 7 + std::min<std::chrono::nanoseconds>(now - last_unit_, kGapMax)) / 8;
    start(now);
  }
  std::uint64_t spell() const { return spell_; }  // number of the present or next spell of hunger, from 1 on
  SwarmTime begins() const {
    return last_unit_ + std::max<std::chrono::nanoseconds>(kHungryAfter, kHungryGaps * usual_gap_);
  }
  bool joins_again(SwarmTime now) {
    if (now < due()) return false;
    join_at_ = now + join_after_;
    join_after_ = std::min(join_after_ * 2, kJoinAgainMax);
    return true;
  }
  // Returns the next time at which joins_again() returns true.
  SwarmTime due() const { return join_at_.value_or(begins()); }

 private:
  std::uint64_t spell_ = 0;
  SwarmTime last_unit_{};
  std::chrono::nanoseconds usual_gap_{0};
  std::optional<SwarmTime> join_at_;  // while the receiver is hungry
  std::chrono::milliseconds join_after_ = kJoinAgain;
};

}  // namespace weft
