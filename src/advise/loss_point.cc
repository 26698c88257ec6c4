#include "advise/loss_point.h"

#include <fmt/core.h>

#include <cmath>

#include "base/limits.h"
#include "base/text.h"

namespace weft::advise {
namespace {

Error expected(std::string_view what, std::string_view name, std::string_view text) {
  return Error{Errc::invalid, fmt::format("{}: expected {}, got \"{}\"", printable(name), what, printable(text))};
}

Result<double> number_of(std::string_view name, std::string_view text) {
  const auto number = parse_real(text);
  if (!number || !std::isfinite(*number)) return expected("a number", name, text);
  return *number;
}

Result<std::optional<double>> number_if_any(std::string_view name, std::string_view text) {
  if (text.empty()) return std::optional<double>();
  WEFT_TRY(const double number, number_of(name, text));
  return std::optional(number);
}

// Parses "12", or "12.0" as a table of floats has it.
Result<std::uint64_t> step_of(std::string_view name, std::string_view text) {
  const auto number = parse_real(text);
  const bool whole = number && *number >= 0 && *number <= static_cast<double>(limits::kTrainingStepMax) &&
                     *number == std::floor(*number);
  if (!whole) return expected(fmt::format("a whole number from 0 to {}", limits::kTrainingStepMax), name, text);
  return static_cast<std::uint64_t>(*number);
}

std::string_view metric_of(const VersionRow& version, std::string_view name) {
  for (const auto& [key, value] : version.metrics)
    if (key == name) return value;
  return "";
}

}  // namespace

Result<LossPoint> point_of(const PointTexts& texts, const LossNames& names) {
  LossPoint point;
  WEFT_TRY(point.step, step_of(names.step, texts.step));
  WEFT_TRY(point.loss, number_of(names.loss, texts.loss));
  WEFT_TRY(point.time_s, number_if_any(kTimeName, texts.time));
  WEFT_TRY(point.save_s, number_if_any(kSaveName, texts.save));
  return point;
}

Result<std::optional<LossPoint>> point_of(const VersionRow& version, const LossNames& names) {
  const std::string_view step = metric_of(version, names.step);
  const std::string_view loss = metric_of(version, names.loss);
  if (step.empty() || loss.empty()) return std::optional<LossPoint>();
  auto point = point_of({.step = step, .loss = loss, .save = metric_of(version, kSaveName)}, names);
  if (!point.ok())
    return Error{point.error().code,
                 fmt::format("{}@{}: metric {}", version.model_name, version.number, point.error().message)};
  point->time_s = static_cast<double>(version.time_ns) * 1e-9 - point->save_s.value_or(0);
  return std::optional(*point);
}

}  // namespace weft::advise
