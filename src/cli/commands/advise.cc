#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "advise/advice.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "cli/commands/advise_follow.h"
#include "cli/commands/advise_source.h"
#include "cli/commands/commands.h"
#include "cli/shared/table.h"

namespace weft {
namespace {

// The output of `weft advise` without --follow.
struct AdviseShown {
  const advise::LossSeries& series;
  const advise::Question& question;
  const advise::Advice& advice;
  advise::ScheduleKind kind;  // the schedule whose saves are listed
};

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

constexpr CommandInfo kAdviseInfo = {
    .name = "advise",
    .summary = "advise a training when to save its model",
    .description =
        "Fits a curve to the loss, and computes the loss that the requests to the served\n"
        "model meet in all, for schedules of saves: \"best\" meets the least; \"fixed\" and\n"
        "\"greedy\" are those of the Viper paper; \"epoch\" saves at the ends of epochs.\n"
        "\n"
        "Losses are metrics of the versions of MODEL, or columns of a CSV file. What was\n"
        "recorded of saves (save_seconds) and of time (a version's own, or the column\n"
        "time, in seconds) gives --t-train and --t-save if it is there three times.\n",
    .examples =
        "weft advise m --until 10000 --requests 50000 --rate 200 --t-save 1.4\n"
        "weft advise --csv metrics.csv --until 10000 --requests 50000 --rate 200 \\\n"
        "     --t-train 0.07 --t-save 1.4 --epoch 216\n"
        "weft advise m --follow --until 10000 --requests 50000 --rate 200 --t-save 1.4\n",
    .json =
        "{losses, step, last_save, fit, fits: [{curve, a, b, c, from, error,\n"
        " error_ahead}], least_error, t_train, t_save, t_load, t_infer, requests,\n"
        " schedules: [{schedule, interval, stall_seconds, loss, paper_loss, steps}],\n"
        " next}; with --follow {step, last_save, next} in each line\n",
    .interrupted = "nothing was changed",
};

Result<std::uint64_t> whole(std::string_view option, const std::string& text, std::uint64_t most) {
  const auto number = parse_u64(text);
  if (!number || *number == 0 || *number > most)
    return Error{Errc::invalid,
                 fmt::format("{}: expected a whole number from 1 to {}, got \"{}\"", option, most, printable(text))};
  return *number;
}

Result<double> above(std::string_view option, const std::string& text, double least) {
  const auto number = parse_real(text);
  if (!number || *number < least || *number > limits::kTrainingSecondsMax)
    return Error{Errc::invalid, fmt::format("{}: expected a number from {} to {}, got \"{}\"", option, least,
                                            limits::kTrainingSecondsMax, printable(text))};
  return *number;
}

class AdviseCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL", model_, OptionSet::Need::optional, "the model whose versions have the losses");
    options.value("--csv", "FILE", csv_, "read losses from this file instead; - is standard input");
    options.value("--metric", "NAME", names_.loss, "the metric or column of the loss (default: loss)");
    options.value("--step", "NAME", names_.step, "the metric or column of the iteration (default: step)");
    options.value("--until", "ITERATION", until_, "the last iteration of the training");
    options.value("--requests", "N", requests_, "requests to the model from its last save on");
    options.value("--rate", "R", rate_, "requests in a second");
    options.value("--t-infer", "SECONDS", request_s_, "time from one request to the next, instead of --rate");
    options.value("--t-train", "SECONDS", step_s_, "time of an iteration");
    options.value("--t-save", "SECONDS", save_s_, "time for which a save stops the training");
    options.value("--t-load", "SECONDS", load_s_, "time from the end of a save until its model answers (default: 0)");
    options.value("--epoch", "ITERATIONS", epoch_, "also show saves at the ends of epochs of this length");
    options.value("--fit", "CURVE", curve_, "exp2, exp3, expd3, lin2 or pow3 (default: what predicts best)",
                  {"exp2", "exp3", "expd3", "lin2", "pow3"});
    options.value("--schedule", "NAME", schedule_,
                  "the schedule whose saves are listed or followed: fixed, greedy or best (default: best)",
                  {"fixed", "greedy", "best"});
    options.flag("--follow", follow_, "print the next iteration to save after, whenever new losses change it");
  }

  Status check_usage() override {
    if (model_.empty() == csv_.empty()) return Error{Errc::invalid, "expected either MODEL or --csv FILE"};
    if (until_.empty()) return Error{Errc::invalid, "expected --until ITERATION"};
    WEFT_TRY(asked_.question.until, whole("--until", until_, limits::kTrainingStepMax));
    if (requests_.empty()) return Error{Errc::invalid, "expected --requests N"};
    WEFT_TRY(asked_.question.requests, whole("--requests", requests_, limits::kRequestsMax));
    if (!epoch_.empty()) {
      WEFT_TRY(asked_.question.epoch, whole("--epoch", epoch_, limits::kTrainingStepMax));
    }
    if (!curve_.empty() && !(asked_.question.curve = advise::curve_kind(curve_)))
      return Error{Errc::invalid,
                   fmt::format("--fit: expected exp2, exp3, expd3, lin2 or pow3, got \"{}\"", printable(curve_))};
    if (!schedule_.empty()) {
      const auto kind = advise::schedule_kind(schedule_);
      if (!kind || *kind == advise::ScheduleKind::epoch)
        return Error{Errc::invalid,
                     fmt::format("--schedule: expected fixed, greedy or best, got \"{}\"", printable(schedule_))};
      asked_.followed = *kind;
    }
    return check_times();
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(auto source, csv_.empty() ? losses_of_model(context, model_, names_, follow_)
                                       : losses_of_csv(context, csv_, names_, follow_));
    if (!follow_) return run_once(context, *source);
    WEFT_CHECK(AdviseFollower(context, *source, asked_).run());
    return kExitDone;
  }

 private:
  Status check_times() {
    advise::GivenTimes& times = asked_.times;
    if (rate_.empty() == request_s_.empty())
      return Error{Errc::invalid, "expected either --rate R or --t-infer SECONDS"};
    WEFT_TRY(times.request_s, rate_.empty() ? above("--t-infer", request_s_, limits::kTrainingSecondsMin)
                                            : above("--rate", rate_, 1 / limits::kTrainingSecondsMax));
    if (!rate_.empty()) times.request_s = 1 / times.request_s;
    if (!step_s_.empty()) {
      WEFT_TRY(times.step_s, above("--t-train", step_s_, limits::kTrainingSecondsMin));
    }
    if (!save_s_.empty()) {
      WEFT_TRY(times.save_s, above("--t-save", save_s_, 0));
    }
    if (!load_s_.empty()) {
      WEFT_TRY(times.load_s, above("--t-load", load_s_, 0));
    }
    return {};
  }

  Result<int> run_once(const Context& context, LossSource& source) const {
    advise::LossSeries series;
    for (;;) {
      WEFT_TRY(const bool more, source.read(series));
      if (!more) break;
      source.wait();
      if (context.patience().cancelled()) return Error{Errc::cancelled, ""};
    }
    const auto timing = advise::timing_of(series, asked_.times);
    if (!timing.ok()) return context.wrong_usage({Errc::invalid, fmt::format("advise: {}", timing.error().message)});
    advise::Question question = asked_.question;
    question.timing = *timing;
    question.last_save = last_save(source, series);
    std::vector<advise::ScheduleKind> kinds = {advise::ScheduleKind::fixed, advise::ScheduleKind::greedy,
                                               advise::ScheduleKind::best};
    if (question.epoch) kinds.insert(kinds.begin(), advise::ScheduleKind::epoch);
    WEFT_TRY(const advise::Advice advice, advise::advise(series, question, kinds));
    const AdviseShown shown{series, question, advice, asked_.followed};
    context.json ? context.print_json(advise_json(shown)) : context.print("{}", advise_text(shown));
    return kExitDone;
  }

  // Returns the iteration of the last recorded save; the newest iteration if no save is recorded.
  static std::uint64_t last_save(const LossSource& source, const advise::LossSeries& series) {
    if (series.points().empty()) return 0;
    const std::uint64_t newest = series.points().back().step;
    return source.saves() == RecordedSaves::each ? newest : series.last_save().value_or(newest);
  }

  std::string model_;
  std::string csv_;
  advise::LossNames names_;
  std::string until_;
  std::string requests_;
  std::string rate_;
  std::string request_s_;
  std::string step_s_;
  std::string save_s_;
  std::string load_s_;
  std::string epoch_;
  std::string curve_;
  std::string schedule_;
  bool follow_ = false;
  AdviseAsked asked_;
};

}  // namespace

constinit const CommandEntry kAdviseCommand = {kAdviseInfo, make<AdviseCommand>};

}  // namespace weft
