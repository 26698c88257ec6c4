#include "advise/fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/limits.h"

namespace weft::advise {
namespace {

struct Samples {
  std::vector<double> steps;
  std::vector<double> losses;
};
struct SamplesView {
  std::span<const double> steps;
  std::span<const double> losses;
  std::size_t size() const { return steps.size(); }
};

// Returns the median of the loss at `i` and of two neighbours on each side, or of fewer on both sides near an end.
double smoothed_at(std::span<const LossPoint> points, std::size_t i) {
  constexpr std::size_t kNeighbours = 2;
  const std::size_t reach = std::min({kNeighbours, i, points.size() - 1 - i});
  std::array<double, 2 * kNeighbours + 1> window{};
  for (std::size_t k = 0; k <= 2 * reach; ++k) window[k] = points[i - reach + k].loss;
  const auto middle = window.begin() + static_cast<std::ptrdiff_t>(reach);
  std::nth_element(window.begin(), middle, middle + static_cast<std::ptrdiff_t>(reach + 1));
  return *middle;
}

// Returns the smoothed losses, averaged in groups if there are more than limits::kLossesFittedMax.
Samples samples_of(std::span<const LossPoint> points) {
  const std::size_t group = (points.size() + limits::kLossesFittedMax - 1) / limits::kLossesFittedMax;
  Samples samples;
  for (std::size_t begin = 0; begin < points.size(); begin += group) {
    const std::size_t end = std::min(begin + group, points.size());
    const auto count = static_cast<double>(end - begin);
    double step = 0;
    double loss = 0;
    for (std::size_t i = begin; i < end; ++i) {
      step += static_cast<double>(points[i].step);
      loss += smoothed_at(points, i);
    }
    samples.steps.push_back(step / count);
    samples.losses.push_back(loss / count);
  }
  return samples;
}

// True if the later half lies below the earlier half by more than three standard errors. The noise is estimated from
// the differences of neighbours, which the trend hardly affects.
bool falls(std::span<const LossPoint> points) {
  const std::size_t half = points.size() / 2;
  double earlier = 0;
  double later = 0;
  double jumps = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i < half) earlier += points[i].loss / static_cast<double>(half);
    if (i >= points.size() - half) later += points[i].loss / static_cast<double>(half);
    if (i > 0) jumps += std::pow(points[i].loss - points[i - 1].loss, 2);
  }
  const double variance = jumps / (2 * static_cast<double>(points.size() - 1));
  return earlier - later > 3 * std::sqrt(2 * variance / static_cast<double>(half));
}

// The line y = scale * u + base, by least squares.
struct Line {
  double scale = 0;
  double base = 0;
  double squares = 0;  // sum of the squared errors
};

Line line_of(std::span<const double> u, std::span<const double> y, bool with_base) {
  const auto count = static_cast<double>(u.size());
  double u_mean = 0;
  double y_mean = 0;
  for (std::size_t i = 0; with_base && i < u.size(); ++i) {
    u_mean += u[i] / count;
    y_mean += y[i] / count;
  }
  double uu = 0;
  double uy = 0;
  double yy = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    const double du = u[i] - u_mean;
    const double dy = y[i] - y_mean;
    uu += du * du;
    uy += du * dy;
    yy += dy * dy;
  }
  Line line;
  line.scale = uu > 0 ? uy / uu : 0;
  line.base = y_mean - line.scale * u_mean;
  line.squares = std::max(yy - line.scale * uy, 0.0);
  return line;
}

// Fits one kind of curve. A curve is linear in all parameters but b: for each b the others are solved, so only b is
// searched.
class Search {
 public:
  Search(CurveKind kind, SamplesView samples) : kind_(kind), samples_(samples), x_(samples.size()), u_(samples.size()) {
    from_ = kind == CurveKind::pow3 ? 0 : samples.steps[0];
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const double x = samples.steps[i] - from_;
      x_[i] = kind == CurveKind::pow3 ? std::log(std::max(x, 1.0)) : x;
    }
  }

  Curve best() {
    if (kind_ == CurveKind::lin2) {
      const Line line = line_of(x_, samples_.losses, true);
      return {kind_, line.scale, line.base, 0, from_};
    }
    constexpr int kGrid = 48;
    constexpr int kRefinements = 40;
    const auto [low, high] = range();
    const double width = (high - low) / kGrid;
    double best = low;
    double least = solve(low).squares;
    for (int i = 1; i <= kGrid; ++i)
      if (const double squares = solve(low + i * width).squares; squares < least) {
        least = squares;
        best = low + i * width;
      }
    const double log_b = golden(std::max(best - width, low), std::min(best + width, high), kRefinements);
    const Line line = solve(log_b);
    return {kind_, line.scale, std::exp(log_b), line.base, from_};
  }

 private:
  // Bounds of log(b): from nearly a straight line to a fall within a few losses.
  std::pair<double, double> range() const {
    if (kind_ == CurveKind::pow3) return {std::log(0.01), std::log(10.0)};
    const double span = x_.back();
    return {std::log(0.01 / span), std::log(5 * static_cast<double>(x_.size() - 1) / span)};
  }

  Line solve(double log_b) {
    const double b = std::exp(log_b);
    for (std::size_t i = 0; i < x_.size(); ++i) u_[i] = std::exp(-b * x_[i]);
    return line_of(u_, samples_.losses, kind_ != CurveKind::exp2);
  }

  // Searches log(b) between two bounds by the golden section.
  double golden(double low, double high, int steps) {
    const double ratio = (std::sqrt(5.0) - 1) / 2;
    double left = high - ratio * (high - low);
    double right = low + ratio * (high - low);
    double left_squares = solve(left).squares;
    double right_squares = solve(right).squares;
    for (int i = 0; i < steps; ++i) {
      if (left_squares <= right_squares) {
        high = std::exchange(right, left);
        right_squares = left_squares;
        left = high - ratio * (high - low);
        left_squares = solve(left).squares;
      } else {
        low = std::exchange(left, right);
        left_squares = right_squares;
        right = low + ratio * (high - low);
        right_squares = solve(right).squares;
      }
    }
    return left_squares <= right_squares ? left : right;
  }

  CurveKind kind_;
  SamplesView samples_;
  double from_ = 0;
  std::vector<double> x_;  // steps from from_ on; their logarithms for pow3
  std::vector<double> u_;  // exp(-b * x)
};

bool is_falling(const Curve& curve) {
  if (!std::isfinite(curve.a) || !std::isfinite(curve.b) || !std::isfinite(curve.c)) return false;
  return curve.kind == CurveKind::lin2 ? curve.a < 0 : curve.a > 0;
}

double error_of(const Curve& curve, SamplesView samples) {
  double squares = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double difference = curve.at(samples.steps[i]) - samples.losses[i];
    squares += difference * difference;
  }
  return squares / static_cast<double>(samples.size());
}

std::vector<Fit> all_fits(const Samples& samples, std::uint64_t until) {
  const SamplesView all{samples.steps, samples.losses};
  const std::size_t early = all.size() - all.size() / 5;
  const SamplesView head{all.steps.first(early), all.losses.first(early)};
  const SamplesView tail{all.steps.subspan(early), all.losses.subspan(early)};
  const bool below_zero = *std::min_element(samples.losses.begin(), samples.losses.end()) < 0;
  std::vector<Fit> fits;
  for (const CurveKind kind : {CurveKind::exp3, CurveKind::exp2, CurveKind::lin2, CurveKind::pow3}) {
    Fit fit{Search(kind, all).best()};
    if (!is_falling(fit.curve) || (!below_zero && fit.curve.at(static_cast<double>(until)) < 0)) continue;
    fit.error = error_of(fit.curve, all);
    const Curve ahead = Search(kind, head).best();
    if (is_falling(ahead)) fit.error_ahead = error_of(ahead, tail);
    fits.push_back(fit);
  }
  return fits;
}

}  // namespace

Result<FitReport> fit_losses(std::span<const LossPoint> points, std::uint64_t until, std::optional<CurveKind> wanted) {
  if (points.size() < kLossesMin)
    return Error{Errc::not_found, fmt::format("expected at least {} losses, got {}", kLossesMin, points.size())};
  if (!falls(points)) return Error{Errc::not_found, "the loss does not fall by more than its noise"};
  FitReport report;
  report.fits = all_fits(samples_of(points), until);
  if (report.fits.empty()) return Error{Errc::not_found, "no falling curve fits the losses"};
  auto by_error = [](const Fit& a, const Fit& b) { return a.error < b.error; };
  auto by_error_ahead = [](const Fit& a, const Fit& b) { return a.error_ahead < b.error_ahead; };
  report.least_error = std::min_element(report.fits.begin(), report.fits.end(), by_error)->curve.kind;
  auto chosen = std::min_element(report.fits.begin(), report.fits.end(), by_error_ahead);
  if (wanted)
    chosen =
        std::find_if(report.fits.begin(), report.fits.end(), [&](const Fit& fit) { return fit.curve.kind == *wanted; });
  if (chosen == report.fits.end())
    return Error{Errc::not_found, fmt::format("no falling curve {} fits the losses", name_of(*wanted))};
  report.chosen = *chosen;
  return report;
}

double Curve::at(double step) const {
  const double x = step - from;
  switch (kind) {
    case CurveKind::exp2:
      return a * std::exp(-b * x);
    case CurveKind::exp3:
      return a * std::exp(-b * x) + c;
    case CurveKind::lin2:
      return a * x + b;
    case CurveKind::pow3:
      return a * std::pow(std::max(x, 1.0), -b) + c;
  }
  return 0;
}

std::string Curve::text() const {
  const std::string x = from == 0 ? "x = step" : fmt::format("x = step - {:.0f}", from);
  switch (kind) {
    case CurveKind::exp2:
      return fmt::format("{:.4g}*exp(-{:.4g}*x), {}", a, b, x);
    case CurveKind::exp3:
      return fmt::format("{:.4g} + {:.4g}*exp(-{:.4g}*x), {}", c, a, b, x);
    case CurveKind::lin2:
      return fmt::format("{:.4g} - {:.4g}*x, {}", b, -a, x);
    case CurveKind::pow3:
      return fmt::format("{:.4g} + {:.4g}*x^-{:.4g}, {}", c, a, b, x);
  }
  return "";
}

std::string_view name_of(CurveKind kind) {
  switch (kind) {
    case CurveKind::exp2:
      return "exp2";
    case CurveKind::exp3:
      return "exp3";
    case CurveKind::lin2:
      return "lin2";
    case CurveKind::pow3:
      return "pow3";
  }
  return "";
}

std::optional<CurveKind> curve_kind(std::string_view name) {
  if (name == "expd3") return CurveKind::exp3;
  for (const CurveKind kind : {CurveKind::exp2, CurveKind::exp3, CurveKind::lin2, CurveKind::pow3})
    if (name_of(kind) == name) return kind;
  return std::nullopt;
}

}  // namespace weft::advise
