// Fits curves to the losses of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "advise/curve.h"
#include "advise/loss_point.h"
#include "weft/result.h"

namespace weft::advise {

inline constexpr std::size_t kLossesMin = 8;

struct Fit {
  Curve curve;
  double error = 0;  // mean of the squared differences to the smoothed losses
  // The same error on the last fifth of the losses, for the curve of this kind that fits the losses before them.
  // Infinity: that curve does not fall.
  double error_ahead = std::numeric_limits<double>::infinity();
};

struct FitReport {
  Fit chosen;             // the fit with the least error ahead, or of the wanted kind
  CurveKind least_error;  // the kind that the paper would choose
  std::vector<Fit> fits;  // one for each kind that falls
};

// Fits curves to the losses, smoothed by the median of five neighbours. Leaves out a kind whose best curve does not
// fall, or falls below zero before `until` although no loss does. Errc::not_found: there are fewer than kLossesMin
// losses, they do not fall by more than their noise, or no curve (of the kind `wanted`) is left.
Result<FitReport> fit_losses(std::span<const LossPoint> points, std::uint64_t until, std::optional<CurveKind> wanted);

}  // namespace weft::advise
