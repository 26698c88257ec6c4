#include "advise/loss_series.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/limits.h"

namespace weft::advise {
namespace {

constexpr std::size_t kMeasuredMin = 3;
constexpr double kPauseFactor = 10;

Status check(const LossPoint& point) {
  if (point.step > limits::kTrainingStepMax)
    return Error{Errc::invalid, fmt::format("step {}: expected at most {}", point.step, limits::kTrainingStepMax)};
  if (!(std::abs(point.loss) <= limits::kLossMax))
    return Error{Errc::invalid, fmt::format("step {}: the loss is {}", point.step, point.loss)};
  if (point.time_s && !(std::abs(*point.time_s) <= limits::kTrainingSecondsMax))
    return Error{Errc::invalid, fmt::format("step {}: the time is {} s", point.step, *point.time_s)};
  if (point.save_s && !(*point.save_s >= 0 && *point.save_s <= limits::kTrainingSecondsMax))
    return Error{Errc::invalid, fmt::format("step {}: the save took {} s", point.step, *point.save_s)};
  return {};
}

std::optional<double> mean_without_pauses(std::vector<double> values) {
  if (values.size() < kMeasuredMin) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const double largest = kPauseFactor * *middle;
  double sum = 0;
  std::size_t count = 0;
  for (const double value : values) {
    if (value > largest) continue;
    sum += value;
    ++count;
  }
  return sum / static_cast<double>(count);
}

}  // namespace

Status LossSeries::add(const LossPoint& point) {
  WEFT_CHECK(check(point));
  while (!points_.empty() && points_.back().step >= point.step) points_.pop_back();
  if (points_.size() >= limits::kLossPointsMax)
    return Error{Errc::invalid, fmt::format("expected at most {} losses", limits::kLossPointsMax)};
  points_.push_back(point);
  return {};
}

std::optional<std::uint64_t> LossSeries::last_save() const {
  const auto saved = std::find_if(points_.rbegin(), points_.rend(), [](const auto& point) { return point.save_s; });
  return saved == points_.rend() ? std::nullopt : std::optional(saved->step);
}

std::optional<double> LossSeries::step_seconds() const {
  std::vector<double> values;
  for (std::size_t i = 1; i < points_.size(); ++i) {
    const LossPoint& before = points_[i - 1];
    const LossPoint& after = points_[i];
    if (!before.time_s || !after.time_s) continue;
    const double seconds = *after.time_s - *before.time_s - before.save_s.value_or(0);
    if (seconds > 0) values.push_back(seconds / static_cast<double>(after.step - before.step));
  }
  return mean_without_pauses(std::move(values));
}

std::optional<double> LossSeries::save_seconds() const {
  std::vector<double> values;
  for (const LossPoint& point : points_)
    if (point.save_s) values.push_back(*point.save_s);
  return mean_without_pauses(std::move(values));
}

}  // namespace weft::advise
