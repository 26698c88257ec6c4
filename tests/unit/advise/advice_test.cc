#include "advise/advice.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>

#include "testing.h"

using namespace weft::advise;
using weft::testing::must;

namespace {

const std::vector<ScheduleKind> kAll = {ScheduleKind::epoch, ScheduleKind::fixed, ScheduleKind::greedy,
                                        ScheduleKind::best};

LossSeries warm_up(std::uint64_t steps) {
  LossSeries series;
  for (std::uint64_t step = 1; step <= steps; ++step)
    must(series.add({step, 2.2 * std::exp(-static_cast<double>(step) / 900) + 0.35, {}, {}}));
  return series;
}

Question question() {
  Question question;
  question.until = 3456;
  question.last_save = 216;
  question.requests = 50'000;
  question.epoch = 216;
  question.timing = {0.07, 1.375, 0.5, 0.01};
  return question;
}

std::string refusal_of(const LossSeries& series, const Question& question) {
  const auto advice = advise(series, question, kAll);
  REQUIRE(!advice.ok());
  return advice.error().message;
}

}  // namespace

TEST_CASE("schedules are given in steps of the training") {
  const Advice advice = must(advise(warm_up(216), question(), kAll));
  REQUIRE(advice.schedules.size() == 4);
  const Schedule& epoch = advice.schedules[0];
  CHECK(epoch.kind == ScheduleKind::epoch);
  REQUIRE(epoch.steps.size() == 15);
  CHECK(epoch.steps.front() == 432);
  CHECK(epoch.steps.back() == 3456);
  CHECK(epoch.stall_s == doctest::Approx(15 * 1.375));
  const Schedule& fixed = advice.schedules[1];
  REQUIRE(fixed.interval.has_value());
  CHECK(fixed.steps.front() == 216 + *fixed.interval);
  const Schedule& best = advice.schedules[3];
  CHECK(best.loss < epoch.loss);
  CHECK(best.loss <= fixed.loss * 1.0001);
  CHECK(best.steps.back() == 3456);
}

TEST_CASE("a save is advised for the iteration that has just ended, or for a later one") {
  LossSeries series = warm_up(1000);
  const Advice advice = must(advise(series, question(), kAll));
  for (const Schedule& schedule : advice.schedules) {
    CAPTURE(name_of(schedule.kind));
    CHECK((schedule.steps.empty() || schedule.steps.front() >= 1000));
  }
  CHECK(advice.schedules[3].steps.front() == 1000);  // the last save is long ago
  CHECK(advice.schedules[0].steps.front() == 1080);
}

TEST_CASE("questions beyond the limits are refused") {
  const LossSeries series = warm_up(216);
  Question asked = question();
  asked.until = 216;
  CHECK(refusal_of(series, asked) == "step 216 is not before the last iteration, 216");
  asked.until = 20'000'000;
  CHECK(refusal_of(series, asked) == "expected at most 10000000 iterations to come");
  asked = question();
  asked.requests = 0;
  CHECK(refusal_of(series, asked) == "expected 1 to 1000000000000000 requests");
  asked = question();
  asked.epoch = 0;
  CHECK(refusal_of(series, asked).starts_with("an epoch has 1 to "));
  asked.epoch = UINT64_MAX;
  CHECK(refusal_of(series, asked).starts_with("an epoch has 1 to "));
  for (double Timing::*seconds : {&Timing::step_s, &Timing::save_s, &Timing::load_s, &Timing::request_s})
    for (const double value : {-1.0, 1e12, std::nan("")}) {
      asked = question();
      asked.timing.*seconds = value;
      CHECK(refusal_of(series, asked).find(" s: expected ") != std::string::npos);
    }
  CHECK(refusal_of(LossSeries(), question()) == "expected at least 8 losses, got 0");
}

TEST_CASE("10,000 losses and 100,000 iterations") {
  Question asked = question();
  asked.until = 110'000;
  asked.last_save = 10'000;
  asked.requests = 2'000'000;
  LossSeries series;
  for (std::uint64_t step = 1; step <= 10'000; ++step)
    must(series.add({step, 2.2 * std::exp(-static_cast<double>(step) / 30'000) + 0.35, {}, {}}));
  const auto begin = std::chrono::steady_clock::now();
  const Advice advice = must(advise(series, asked, kAll));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  MESSAGE("took ", took.count(), " s");
  CHECK(advice.schedules.back().steps.size() > 10);
}
