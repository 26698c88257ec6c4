#include "advise/fit.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "advise/csv.h"
#include "testing.h"

using namespace weft::advise;

namespace {

std::vector<LossPoint> points_of(const Curve& curve, std::size_t count, std::uint64_t first, double noise,
                                 std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, noise);
  std::vector<LossPoint> points(count);
  for (std::size_t i = 0; i < count; ++i) {
    points[i].step = first + i;
    points[i].loss = curve.at(static_cast<double>(first + i)) + (noise > 0 ? normal(random) : 0);
  }
  return points;
}

void check_recovered(const Curve& curve, std::size_t count, double noise, std::uint64_t seed) {
  const auto points = points_of(curve, count, static_cast<std::uint64_t>(curve.from), noise, seed);
  const auto report = fit_losses(points, 2 * count, curve.kind);
  REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
  const Curve& found = report->chosen.curve;
  CAPTURE(found.text());
  CHECK(found.kind == curve.kind);
  CHECK(found.a == doctest::Approx(curve.a).epsilon(0.05));
  CHECK(found.b == doctest::Approx(curve.b).epsilon(0.05));
  CHECK(found.c == doctest::Approx(curve.c).epsilon(0.05));
}

}  // namespace

TEST_CASE("the parameters of noisy curves of each kind are found within 5 %") {
  const std::uint64_t seed = weft::testing::test_seed();
  INFO("WEFT_TEST_SEED=", seed);
  check_recovered({CurveKind::exp2, 3.0, 0.001, 0, 0}, 2000, 0.03, seed);
  check_recovered({CurveKind::exp3, 2.2, 1 / 900.0, 0.35, 0}, 3000, 0.02, seed);
  check_recovered({CurveKind::exp3, 2.2, 1 / 900.0, 0.35, 70'000}, 3000, 0.02, seed);
  check_recovered({CurveKind::lin2, -0.0005, 2.5, 0, 0}, 2000, 0.03, seed);
  check_recovered({CurveKind::pow3, 5.0, 0.5, 0.4, 0}, 5000, 0.01, seed);
}

TEST_CASE("the kind of a curve is chosen by its predictions") {
  for (const Curve& curve : {Curve{CurveKind::exp3, 2.2, 1 / 300.0, 0.35, 0}, Curve{CurveKind::exp2, 3.0, 0.003, 0, 0},
                             Curve{CurveKind::lin2, -0.0005, 2.5, 0, 0}, Curve{CurveKind::pow3, 5.0, 0.5, 0.4, 0}}) {
    const auto points = points_of(curve, 1000, 0, 0, 1);
    const FitReport report = fit_losses(points, 3000, std::nullopt).value();
    for (const std::uint64_t step : {1500, 3000}) {
      const auto at = static_cast<double>(step);
      CHECK(report.chosen.curve.at(at) == doctest::Approx(curve.at(at)).epsilon(0.001));
    }
  }
}

TEST_CASE("Expd3 is Exp3 by another name") {
  CHECK(curve_kind("expd3") == CurveKind::exp3);
  CHECK(curve_kind("pow3") == CurveKind::pow3);
  CHECK(!curve_kind("Exp3"));
  CHECK(!curve_kind(""));
}

TEST_CASE("spikes do not move the curve") {
  const Curve curve{CurveKind::exp3, 2.2, 1 / 300.0, 0.35, 0};
  auto points = points_of(curve, 1000, 0, 0.001, 1);
  for (std::size_t i = 7; i < points.size(); i += 50) points[i].loss = 100;
  // The noise is estimated from the raw losses, including spikes.
  CHECK(!fit_losses(points, 3000, CurveKind::exp3).ok());
  for (std::size_t i = 7; i < points.size(); i += 50) points[i].loss = 4;
  const FitReport report = fit_losses(points, 3000, CurveKind::exp3).value();
  CHECK(report.chosen.curve.at(3000) == doctest::Approx(curve.at(3000)).epsilon(0.01));
}

TEST_CASE("a run without a trend gives no advice") {
  auto refusal = [](const std::vector<LossPoint>& points, std::optional<CurveKind> kind = std::nullopt) {
    const auto report = fit_losses(points, 10'000, kind);
    REQUIRE(!report.ok());
    CHECK(report.error().code == weft::Errc::not_found);
    return report.error().message;
  };
  const Curve falling{CurveKind::exp3, 2.2, 0.01, 0.35, 0};
  CHECK(refusal(points_of(falling, 7, 0, 0, 1)) == "expected at least 8 losses, got 7");
  CHECK(fit_losses(points_of(falling, 8, 0, 0, 1), 10'000, std::nullopt).ok());
  CHECK(refusal({}) == "expected at least 8 losses, got 0");
  const Curve flat{CurveKind::lin2, 0, 1, 0, 0};
  CHECK(refusal(points_of(flat, 100, 0, 0, 1)) == "the loss does not fall by more than its noise");
  const Curve rising{CurveKind::lin2, 0.1, 1, 0, 0};
  CHECK(refusal(points_of(rising, 100, 0, 0, 1)) == "the loss does not fall by more than its noise");
  // A straight line that reaches zero before the end is rejected.
  const Curve steep{CurveKind::lin2, -0.01, 1.2, 0, 0};
  CHECK(refusal(points_of(steep, 100, 0, 0, 1), CurveKind::lin2) == "no falling curve lin2 fits the losses");
}

TEST_CASE("flat noise is taken for a fall in fewer than one of a hundred runs") {
  const Curve flat{CurveKind::lin2, 0, 1, 0, 0};
  int believed = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed)
    believed += fit_losses(points_of(flat, 40, 0, 0.1, seed), 1000, std::nullopt).ok() ? 1 : 0;
  CHECK(believed < 10);
}

TEST_CASE("losses of any size are fitted or refused") {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> exponent(-15, 15);
  for (int i = 0; i < 300; ++i) {
    LossSeries series;
    std::uint64_t step = 0;
    for (int k = 0; k < 12; ++k) {
      step += 1 + (random() >> (10 + random() % 50)) % (1ULL << 49U);
      weft::testing::must(series.add({step, std::pow(10.0, exponent(random)) * (random() % 2 == 0 ? 1 : -1), {}, {}}));
    }
    const auto report = fit_losses(series.points(), step + 1000, std::nullopt);
    if (report.ok()) CHECK(std::isfinite(report->chosen.curve.at(static_cast<double>(step))));
  }
}

TEST_CASE("more losses than are fitted are averaged") {
  const Curve curve{CurveKind::exp3, 2.2, 1 / 20'000.0, 0.35, 0};
  const FitReport report = fit_losses(points_of(curve, 100'000, 0, 0.01, 1), 200'000, CurveKind::exp3).value();
  CHECK(report.chosen.curve.a == doctest::Approx(curve.a).epsilon(0.01));
  CHECK(report.chosen.curve.b == doctest::Approx(curve.b).epsilon(0.01));
  CHECK(report.chosen.curve.c == doctest::Approx(curve.c).epsilon(0.01));
}
