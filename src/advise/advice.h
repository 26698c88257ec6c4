// From the losses of a run to the iterations after which to save.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "advise/fit.h"
#include "advise/loss_series.h"
#include "advise/schedule.h"
#include "weft/result.h"

namespace weft::advise {

enum class ScheduleKind : std::uint8_t { epoch, fixed, greedy, best };
std::string_view name_of(ScheduleKind kind);
std::optional<ScheduleKind> schedule_kind(std::string_view name);

// What is known of a Timing without the series.
struct GivenTimes {
  std::optional<double> step_s;
  std::optional<double> save_s;
  double load_s = 0;
  double request_s = 0;
};
// With the series' own means for what is not given. Errc::not_found: the series lacks them too; the message says which.
Result<Timing> timing_of(const LossSeries& series, const GivenTimes& given);

struct Question {
  std::uint64_t until = 0;             // the last iteration of the training
  std::uint64_t last_save = 0;         // the iteration whose model answers now; at most the newest of the series
  std::uint64_t requests = 0;          // to come, from the last save on
  std::optional<std::uint64_t> epoch;  // iterations; needed for ScheduleKind::epoch
  std::optional<CurveKind> curve;      // none: the one that predicts best
  Timing timing;
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::best;
  std::optional<std::uint64_t> interval;  // of one with a fixed interval
  std::vector<std::uint64_t> steps;       // to save after
  double stall_s = 0;                     // what these saves stop the training
  double loss = 0;                        // cumulative_loss
  double paper_loss = 0;
};

struct Advice {
  FitReport fit;
  std::vector<Schedule> schedules;  // as they were asked for
};

// Errc::not_found: there is no advice, as fit_losses says, or the training is at its end. Errc::invalid: a number of
// the question exceeds its limit.
Result<Advice> advise(const LossSeries& series, const Question& question, const std::vector<ScheduleKind>& kinds);

}  // namespace weft::advise
