// One loss of a training run, and what was recorded with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft::advise {

struct LossPoint {
  std::uint64_t step = 0;  // iterations that are done
  double loss = 0;
  std::optional<double> time_s;  // when the iteration ended, before its save; from any zero
  std::optional<double> save_s;  // the model was saved after this iteration, and the training waited for so long
};

// Under which names a version's metrics or the columns of a file have them. kTimeName is of files only.
struct LossNames {
  std::string loss = "loss";
  std::string step = "step";
};
inline constexpr std::string_view kTimeName = "time";
inline constexpr std::string_view kSaveName = "save_seconds";

struct PointTexts {
  std::string_view step;
  std::string_view loss;
  std::string_view time = {};  // "": not recorded, as for save
  std::string_view save = {};
};
// Errc::invalid: a text is no number, or the step is no whole number from 0 on. The message has its name.
Result<LossPoint> point_of(const PointTexts& texts, const LossNames& names);

// Of a version, removed or not; none if it lacks one of the two metrics. It was published when its save ended.
Result<std::optional<LossPoint>> point_of(const VersionRow& version, const LossNames& names);

}  // namespace weft::advise
