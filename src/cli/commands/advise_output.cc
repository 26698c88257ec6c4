#include "cli/commands/advise_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/shared/table.h"

namespace weft {
namespace {

const advise::Schedule& chosen(const AdviseShown& shown) {
  for (const advise::Schedule& schedule : shown.advice.schedules)
    if (schedule.kind == shown.kind) return schedule;
  return shown.advice.schedules.back();
}

std::string fit_text(const advise::FitReport& report) {
  const advise::Fit& fit = report.chosen;
  std::string text = fmt::format("loss      {}  {}\n", name_of(fit.curve.kind), fit.curve.text());
  text += fmt::format("error     {:.3g} on the last fifth, {:.3g} on all losses", std::sqrt(fit.error_ahead),
                      std::sqrt(fit.error));
  if (report.least_error != fit.curve.kind)
    text += fmt::format("; {} has the least error on all", name_of(report.least_error));
  return text + "\n";
}

std::string times_text(const advise::Timing& timing) {
  return fmt::format("times     iteration {:.4g} s, save {:.4g} s, load {:.4g} s, a request every {:.4g} s\n",
                     timing.step_s, timing.save_s, timing.load_s, timing.request_s);
}

std::string schedules_text(const std::vector<advise::Schedule>& schedules) {
  TextTable table({{"SCHEDULE"},
                   {"EVERY", Align::right},
                   {"SAVES", Align::right},
                   {"STALL", Align::right},
                   {"LOSS", Align::right},
                   {"PAPER'S COUNT", Align::right}});
  for (const advise::Schedule& schedule : schedules)
    table.row({std::string(name_of(schedule.kind)), schedule.interval ? fmt::format("{}", *schedule.interval) : "",
               fmt::format("{}", schedule.steps.size()), fmt::format("{:.1f} s", schedule.stall_s),
               fmt::format("{:.6g}", schedule.loss), fmt::format("{:.6g}", schedule.paper_loss)});
  return table.text();
}

std::string saves_text(const AdviseShown& shown) {
  const auto& steps = chosen(shown).steps;
  if (steps.empty()) return "no further save pays\n";
  constexpr std::size_t kListed = 8;
  std::string text = fmt::format("save after step {}", steps[0]);
  for (std::size_t i = 1; i < std::min(steps.size(), kListed); ++i) text += fmt::format(", {}", steps[i]);
  if (steps.size() > kListed) text += fmt::format(" +{} more", steps.size() - kListed);
  const double mean = static_cast<double>(steps.back() - shown.question.last_save) / static_cast<double>(steps.size());
  return text + fmt::format("; every {:.0f} steps on average\n", mean);
}

void write_fit(JsonWriter& json, const advise::Fit& fit) {
  json.begin_object().member("curve", name_of(fit.curve.kind)).member("a", fit.curve.a).member("b", fit.curve.b);
  json.member("c", fit.curve.c).member("from", fit.curve.from);
  json.member("error", fit.error).member("error_ahead", fit.error_ahead).end_object();
}

void write_schedule(JsonWriter& json, const advise::Schedule& schedule) {
  json.begin_object().member("schedule", name_of(schedule.kind)).key("interval");
  schedule.interval ? json.value(*schedule.interval) : json.null();
  json.member("stall_seconds", schedule.stall_s).member("loss", schedule.loss);
  json.member("paper_loss", schedule.paper_loss).key("steps").begin_array();
  for (const std::uint64_t step : schedule.steps) json.value(step);
  json.end_array().end_object();
}

}  // namespace

std::string advise_text(const AdviseShown& shown) {
  return fit_text(shown.advice.fit) + times_text(shown.question.timing) + schedules_text(shown.advice.schedules) +
         saves_text(shown);
}

JsonWriter advise_json(const AdviseShown& shown) {
  const advise::Timing& timing = shown.question.timing;
  JsonWriter json;
  json.begin_object().member("losses", std::uint64_t{shown.series.points().size()});
  json.member("step", shown.series.points().back().step).member("last_save", shown.question.last_save);
  json.key("fit");
  write_fit(json, shown.advice.fit.chosen);
  json.key("fits").begin_array();
  for (const advise::Fit& fit : shown.advice.fit.fits) write_fit(json, fit);
  json.end_array().member("least_error", name_of(shown.advice.fit.least_error));
  json.member("t_train", timing.step_s).member("t_save", timing.save_s).member("t_load", timing.load_s);
  json.member("t_infer", timing.request_s).member("requests", shown.question.requests);
  json.key("schedules").begin_array();
  for (const advise::Schedule& schedule : shown.advice.schedules) write_schedule(json, schedule);
  json.end_array().key("next");
  const auto& steps = chosen(shown).steps;
  steps.empty() ? json.null() : json.value(steps.front());
  json.end_object();
  return json;
}

}  // namespace weft
