// Whether a drain of a node moves anything. Pure; for one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "weft/store_rows.h"

namespace weft {

// Tells since when a drain has moved no version.
class DrainWatch {
 public:
  using Clock = std::chrono::steady_clock;
  // `left`: the versions that are left at `now`. Returns the time since one was moved.
  Clock::duration idle(std::set<VersionName> left, Clock::time_point now) {
    const bool has_moved = !std::ranges::includes(left, left_);
    if (has_moved || left_.empty()) since_ = now;
    left_ = std::move(left);
    return now - since_;
  }

 private:
  std::set<VersionName> left_;
  Clock::time_point since_;
};

}  // namespace weft
