// The losses of one training run, by iteration, and the times that were recorded with them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "advise/loss_point.h"
#include "weft/result.h"

namespace weft::advise {

// One thread at a time.
class LossSeries {
 public:
  // Adds a point. Points of the same and of later steps are removed: the training went back to a checkpoint.
  // Errc::invalid: a number is not finite or exceeds its limit, or there are too many points.
  Status add(const LossPoint& point);
  void clear() { points_.clear(); }

  std::span<const LossPoint> points() const { return points_; }  // by step, each step once
  std::optional<std::uint64_t> last_save() const;                // the last step with save_s

  // Means of the recorded times. Values above ten times the median are pauses and do not count. Nothing if there are
  // fewer than three values.
  std::optional<double> step_seconds() const;  // of one iteration, without saves
  std::optional<double> save_seconds() const;  // of one save

 private:
  std::vector<LossPoint> points_;
};

}  // namespace weft::advise
