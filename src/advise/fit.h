// Fits curves to the losses of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "advise/loss_point.h"
#include "weft/result.h"

namespace weft::advise {

// exp3 is also the paper's Expd3, c - (c - a)*exp(-b*x): these are the same curves with another a.
enum class CurveKind : std::uint8_t { exp2, exp3, lin2, pow3 };

// With x = step - from:
//   exp2  a*exp(-b*x)
//   exp3  a*exp(-b*x) + c
//   lin2  a*x + b
//   pow3  a*x^(-b) + c, where x is at least 1
struct Curve {
  CurveKind kind = CurveKind::lin2;
  double a = 0;
  double b = 0;
  double c = 0;
  double from = 0;

  double at(double step) const;
  std::string text() const;  // "0.35 + 2.2*exp(-0.0011*x), x = step - 100"
};

std::string_view name_of(CurveKind kind);
std::optional<CurveKind> curve_kind(std::string_view name);  // accepts "expd3" for exp3

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
