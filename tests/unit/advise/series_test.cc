#include "advise/loss_series.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "testing.h"

using namespace weft::advise;
using weft::Errc;
using weft::testing::must;

namespace {

weft::VersionRow version(std::uint64_t number, std::vector<std::pair<std::string, std::string>> metrics) {
  weft::VersionRow row;
  row.model_name = "m";
  row.number = number;
  row.time_ns = number * 10'000'000'000;
  row.metrics = std::move(metrics);
  return row;
}

std::string refusal_of(const std::vector<std::pair<std::string, std::string>>& metrics) {
  const auto point = point_of(version(3, metrics), {});
  REQUIRE(!point.ok());
  CHECK(point.error().code == Errc::invalid);
  return point.error().message;
}

}  // namespace

TEST_CASE("a training that goes back to a checkpoint replaces what it had") {
  LossSeries series;
  for (const std::uint64_t step : {10, 20, 30, 40}) must(series.add({step, 1.0, {}, {}}));
  must(series.add({25, 0.5, {}, {}}));
  REQUIRE(series.points().size() == 3);
  CHECK(series.points()[2].step == 25);
  must(series.add({25, 0.4, {}, {}}));
  REQUIRE(series.points().size() == 3);
  CHECK(series.points()[2].loss == 0.4);
  must(series.add({0, 9, {}, {}}));
  CHECK(series.points().size() == 1);
}

TEST_CASE("numbers beyond the limits are refused, and change nothing") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  LossSeries series;
  for (const double loss : {kNan, kInfinity, -kInfinity, 1e16}) {
    const auto status = series.add({1, loss, {}, {}});
    REQUIRE(!status.ok());
    CHECK(status.error().code == Errc::invalid);
  }
  for (const double seconds : {kNan, kInfinity, 1e12, -1.0}) {
    CHECK(!series.add({1, 1, {}, seconds}).ok());
    if (seconds != -1) CHECK(!series.add({1, 1, seconds, {}}).ok());
  }
  CHECK(!series.add({(1ULL << 53U) + 1, 1, {}, {}}).ok());
  CHECK(series.points().empty());
}

TEST_CASE("times are means without pauses, of three values at least") {
  LossSeries series;
  must(series.add({0, 1, 100.0, {}}));
  must(series.add({10, 1, 101.0, 2.0}));  // 0.1 s an iteration
  must(series.add({20, 1, 104.0, 4.0}));  // 1 s after a save of 2 s
  CHECK(!series.step_seconds());
  CHECK(!series.save_seconds());
  CHECK(series.last_save() == 20);
  must(series.add({30, 1, 110.0, 3.0}));  // 2 s after a save of 4 s
  must(series.add({40, 1, 9110.0, {}}));  // a pause over night
  must(series.add({50, 1, {}, {}}));
  must(series.add({60, 1, 9111.0, {}}));
  CHECK(series.step_seconds() == doctest::Approx((0.1 + 0.1 + 0.2) / 3));
  CHECK(series.save_seconds() == doctest::Approx(3));
  CHECK(series.last_save() == 30);
  CHECK(!LossSeries().last_save());
}

TEST_CASE("a version's metrics are a point of the series") {
  const auto point = must(point_of(version(3, {{"loss", "0.5"}, {"step", "300"}, {"save_seconds", "1.5"}}), {}));
  REQUIRE(point.has_value());
  CHECK(point->step == 300);
  CHECK(point->loss == 0.5);
  CHECK(point->save_s == 1.5);
  CHECK(point->time_s == doctest::Approx(30 - 1.5));
  CHECK(!must(point_of(version(3, {{"loss", "0.5"}}), {})));
  CHECK(!must(point_of(version(3, {{"step", "5"}}), {})));
  CHECK(must(point_of(version(3, {{"eval", "0.5"}, {"epoch", "7"}}), {"eval", "epoch"}))->step == 7);
}

TEST_CASE("hostile metrics are refused by name") {
  CHECK(refusal_of({{"loss", "nan"}, {"step", "1"}}) == R"(m@3: metric loss: expected a number, got "nan")");
  CHECK(refusal_of({{"loss", "1e999"}, {"step", "1"}}) == R"(m@3: metric loss: expected a number, got "1e999")");
  CHECK(refusal_of({{"loss", "inf"}, {"step", "1"}}) == R"(m@3: metric loss: expected a number, got "inf")");
  CHECK(refusal_of({{"loss", "0.5 "}, {"step", "1"}}) == R"(m@3: metric loss: expected a number, got "0.5 ")");
  for (const char* step : {"-1", "1.5", "1e300", "9007199254740993000", "nan", "0x10", "one"})
    CHECK(refusal_of({{"loss", "1"}, {"step", step}})
              .starts_with("m@3: metric step: expected a whole number from 0 to "));
  CHECK(refusal_of({{"loss", "1"}, {"step", "1"}, {"save_seconds", "\x1b[2J"}}) ==
        R"(m@3: metric save_seconds: expected a number, got "\x1b[2J")");
}
