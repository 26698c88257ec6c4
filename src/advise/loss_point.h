// One loss of a training run, and the times that were recorded with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft::advise {

struct LossPoint {
  std::uint64_t step = 0;  // finished iterations
  double loss = 0;
  std::optional<double> time_s;  // end of the iteration, before its save; from any zero
  std::optional<double> save_s;  // duration of the save after this iteration, which stopped the training; none: no save
};

// Names of loss and step among a version's metrics or a file's columns. Only files have kTimeName.
struct LossNames {
  std::string loss = "loss";
  std::string step = "step";
};
inline constexpr std::string_view kTimeName = "time";
inline constexpr std::string_view kSaveName = "save_seconds";

struct PointTexts {
  std::string_view step;
  std::string_view loss;
  std::string_view time = {};  // "": not recorded, also for `save`
  std::string_view save = {};
};
// Parses a point. Errc::invalid: a text is not a number, or the step is not a whole number from 0 on. The message names
// the metric or column.
Result<LossPoint> point_of(const PointTexts& texts, const LossNames& names);

// Returns the point of a version, live or removed; nothing if the version lacks one of the two metrics. Assumes that
// the version was published when its save ended.
Result<std::optional<LossPoint>> point_of(const VersionRow& version, const LossNames& names);

}  // namespace weft::advise
