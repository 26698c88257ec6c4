// Computes from the losses of a run after which iterations to save.
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

// Times that the user gives. The series replaces a missing step_s or save_s.
struct GivenTimes {
  std::optional<double> step_s;
  std::optional<double> save_s;
  double load_s = 0;
  double request_s = 0;
};
// Returns the given times, and the series' means for the missing ones. Errc::not_found: the series has too few values
// of a missing time; the message names it.
Result<Timing> timing_of(const LossSeries& series, const GivenTimes& given);

struct Question {
  std::uint64_t until = 0;             // the last iteration of the training
  std::uint64_t last_save = 0;         // iteration of the model that serves now; at most the newest of the series
  std::uint64_t requests = 0;          // requests to come after the last save
  std::optional<std::uint64_t> epoch;  // iterations; needed for ScheduleKind::epoch
  std::optional<CurveKind> curve;      // none: the curve with the least error ahead
  Timing timing;
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::best;
  std::optional<std::uint64_t> interval;  // iterations; set if the schedule has a fixed interval
  std::vector<std::uint64_t> steps;       // iterations to save after
  double stall_s = 0;                     // time that these saves stop the training
  double loss = 0;                        // by cumulative_loss()
  double paper_loss = 0;
};

struct Advice {
  FitReport fit;
  std::vector<Schedule> schedules;  // in the order of `kinds`
};

// Computes a schedule of each kind. Errc::not_found: the losses allow no advice (fit_losses()), or the training is at
// its end. Errc::invalid: a number of the question exceeds its limit.
Result<Advice> advise(const LossSeries& series, const Question& question, const std::vector<ScheduleKind>& kinds);

}  // namespace weft::advise
