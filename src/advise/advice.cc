#include "advise/advice.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/limits.h"

namespace weft::advise {
namespace {

constexpr std::array<std::pair<ScheduleKind, std::string_view>, 4> kNames = {{{ScheduleKind::epoch, "epoch"},
                                                                              {ScheduleKind::fixed, "fixed"},
                                                                              {ScheduleKind::greedy, "greedy"},
                                                                              {ScheduleKind::best, "best"}}};

Status check_seconds(std::string_view what, double seconds, double least) {
  if (seconds >= least && seconds <= limits::kTrainingSecondsMax) return {};
  return Error{Errc::invalid,
               fmt::format("{} is {} s: expected {} to {} s", what, seconds, least, limits::kTrainingSecondsMax)};
}

Status check(const LossSeries& series, const Question& question) {
  const std::uint64_t newest = series.points().back().step;
  if (question.requests == 0 || question.requests > limits::kRequestsMax)
    return Error{Errc::invalid, fmt::format("expected 1 to {} requests", limits::kRequestsMax)};
  if (question.epoch && (*question.epoch == 0 || *question.epoch > limits::kTrainingStepMax))
    return Error{Errc::invalid, fmt::format("an epoch has 1 to {} iterations", limits::kTrainingStepMax)};
  WEFT_CHECK(check_seconds("an iteration", question.timing.step_s, limits::kTrainingSecondsMin));
  WEFT_CHECK(check_seconds("the time between requests", question.timing.request_s, limits::kTrainingSecondsMin));
  WEFT_CHECK(check_seconds("a save", question.timing.save_s, 0));
  WEFT_CHECK(check_seconds("a load", question.timing.load_s, 0));
  if (question.last_save > newest) return Error{Errc::internal, "the last save is newer than the newest loss"};
  if (newest >= question.until)
    return Error{Errc::not_found, fmt::format("step {} is not before the last iteration, {}", newest, question.until)};
  if (question.until - question.last_save > limits::kIterationsAdvisedMax)
    return Error{Errc::invalid, fmt::format("expected at most {} iterations to come", limits::kIterationsAdvisedMax)};
  return {};
}

Outlook outlook_of(const LossSeries& series, const Question& question, const Curve& curve) {
  Outlook outlook;
  const std::uint64_t count = question.until - question.last_save + 1;
  outlook.losses.reserve(count);
  for (std::uint64_t j = 0; j < count; ++j)
    outlook.losses.push_back(curve.at(static_cast<double>(question.last_save + j)));
  // The iteration of the newest loss has just ended: its model can still be saved.
  outlook.soonest =
      static_cast<std::uint32_t>(std::max<std::uint64_t>(series.points().back().step - question.last_save, 1));
  outlook.requests = question.requests;
  outlook.timing = question.timing;
  return outlook;
}

// Saves at the ends of epochs, which are counted from iteration 0.
Saves epoch_saves(const Outlook& outlook, const Question& question) {
  Saves saves;
  const std::uint64_t epoch = *question.epoch;
  const std::uint64_t soonest = question.last_save + outlook.soonest;
  for (std::uint64_t step = (soonest + epoch - 1) / epoch * epoch; step <= question.until; step += epoch)
    saves.push_back(static_cast<std::uint32_t>(step - question.last_save));
  return saves;
}

Saves saves_of(const LossSeries& series, const Outlook& outlook, const Question& question, Schedule& schedule) {
  switch (schedule.kind) {
    case ScheduleKind::epoch:
      schedule.interval = question.epoch;
      return epoch_saves(outlook, question);
    case ScheduleKind::fixed:
      schedule.interval = fixed_interval(outlook);
      return regular_saves(outlook, static_cast<std::uint32_t>(*schedule.interval));
    case ScheduleKind::greedy:
      return greedy_saves(outlook, greedy_threshold(series.points()));
    case ScheduleKind::best:
      return best_saves(outlook);
  }
  return {};
}

}  // namespace

std::string_view name_of(ScheduleKind kind) {
  for (const auto& [each, name] : kNames)
    if (each == kind) return name;
  return "";
}

std::optional<ScheduleKind> schedule_kind(std::string_view name) {
  for (const auto& [kind, each] : kNames)
    if (each == name) return kind;
  return std::nullopt;
}

Result<Timing> timing_of(const LossSeries& series, const GivenTimes& given) {
  const auto step_s = given.step_s ? given.step_s : series.step_seconds();
  const auto save_s = given.save_s ? given.save_s : series.save_seconds();
  if (step_s && save_s) return Timing{*step_s, *save_s, given.load_s, given.request_s};
  std::string missing;
  if (!step_s) missing = "the time of an iteration (--t-train; fewer than 3 are recorded)";
  if (!save_s)
    missing += fmt::format("{}the time of a save (--t-save; fewer than 3 are recorded)", step_s ? "" : " and ");
  return Error{Errc::not_found, fmt::format("expected {}", missing)};
}

Result<Advice> advise(const LossSeries& series, const Question& question, const std::vector<ScheduleKind>& kinds) {
  Advice advice;
  WEFT_TRY(advice.fit, fit_losses(series.points(), question.until, question.curve));
  WEFT_CHECK(check(series, question));
  const Outlook outlook = outlook_of(series, question, advice.fit.chosen.curve);
  for (const ScheduleKind kind : kinds) {
    Schedule schedule;
    schedule.kind = kind;
    const Saves saves = saves_of(series, outlook, question, schedule);
    for (const std::uint32_t save : saves) schedule.steps.push_back(question.last_save + save);
    schedule.stall_s = static_cast<double>(saves.size()) * question.timing.save_s;
    schedule.loss = cumulative_loss(outlook, saves);
    schedule.paper_loss = paper_loss(outlook, saves);
    advice.schedules.push_back(std::move(schedule));
  }
  return advice;
}

}  // namespace weft::advise
