#include "advise/schedule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "testing.h"

using namespace weft::advise;

namespace {

using Random = std::mt19937_64;

double real(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
std::uint64_t whole(Random& random, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
}

// A random time in multiples of 1/64 s, so that all sums and comparisons are exact.
double exact_seconds(Random& random, std::uint64_t low, std::uint64_t high) {
  return static_cast<double>(whole(random, low, high)) / 64;
}

std::vector<double> falling_losses(Random& random, std::size_t count) {
  std::vector<double> losses(count);
  const double rate = std::exp(real(random, std::log(0.001), std::log(0.3)));
  const double fall = real(random, 0.2, 4);
  const double base = real(random, 0.05, 2);
  const bool power = whole(random, 0, 1) == 1;
  for (std::size_t j = 0; j < count; ++j) {
    const auto x = static_cast<double>(j);
    losses[j] = base + fall * (power ? std::pow(x + 5, -rate * 3) : std::exp(-rate * x));
  }
  return losses;
}

Saves some_saves(Random& random, const Outlook& outlook) {
  Saves saves;
  const std::uint64_t one_in = whole(random, 1, 12);
  for (std::uint32_t j = outlook.soonest; j < outlook.losses.size(); ++j)
    if (whole(random, 1, one_in) == 1) saves.push_back(j);
  return saves;
}

// Simulates the trainer event by event: runs, saves and loads. Each request gets the model that is live at its time.
double simulated_loss(const Outlook& outlook, const Saves& saves) {
  const Timing& timing = outlook.timing;
  std::vector<std::pair<double, double>> live;  // load time and new loss of each saved model
  double clock = 0;
  std::size_t next = 0;
  for (std::uint32_t j = 1; j < outlook.losses.size(); ++j) {
    clock += timing.step_s;
    if (next == saves.size() || saves[next] != j) continue;
    clock += timing.save_s;
    live.emplace_back(clock + timing.load_s, outlook.losses[j]);
    ++next;
  }
  double sum = 0;
  double loss = outlook.losses[0];
  std::size_t shown = 0;
  for (std::uint64_t n = 1; n <= outlook.requests; ++n) {
    const double now = static_cast<double>(n) * timing.request_s;
    while (shown < live.size() && live[shown].first < now) loss = live[shown++].second;
    sum += loss;
  }
  return sum;
}

// The paper's algorithm 1, per request. Each interval begins with the full time of a request.
double simulated_paper_loss(const Outlook& outlook, const Saves& saves) {
  const Timing& timing = outlook.timing;
  double sum = 0;
  std::uint64_t left = outlook.requests;
  std::uint32_t before = 0;
  for (const std::uint32_t save : saves) {
    double seconds = (save - before) * timing.step_s + timing.save_s + (before == 0 ? timing.load_s : 0);
    for (; left > 0 && seconds >= timing.request_s; seconds -= timing.request_s, --left) sum += outlook.losses[before];
    before = save;
  }
  return sum + static_cast<double>(left) * outlook.losses[before];
}

// The least cumulative loss of all schedules with whole requests. Dynamic program over iterations and numbers of saves.
double least_loss(const Outlook& outlook) {
  const Timing& timing = outlook.timing;
  const auto n = static_cast<std::uint32_t>(outlook.losses.size());
  const auto all = static_cast<double>(outlook.requests);
  auto by_then = [&](std::uint32_t j, std::uint32_t saves) {
    return std::min(std::floor((j * timing.step_s + saves * timing.save_s + timing.load_s) / timing.request_s), all);
  };
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double least = all * outlook.losses[0];
  std::vector<double> before(n, kNone);
  before[0] = 0;
  for (std::uint32_t count = 1; count < n; ++count) {
    std::vector<double> now(n, kNone);
    for (std::uint32_t j = std::max(outlook.soonest, count); j < n; ++j) {
      for (std::uint32_t i = count - 1; i < j; ++i) {
        if (before[i] == kNone) continue;
        const double from = count == 1 ? 0 : by_then(i, count - 1);
        now[j] = std::min(now[j], before[i] + (by_then(j, count) - from) * outlook.losses[i]);
      }
      if (now[j] != kNone) least = std::min(least, now[j] + (all - by_then(j, count)) * outlook.losses[j]);
    }
    before = std::move(now);
  }
  return least;
}

Outlook random_outlook(Random& random, std::size_t count_max, std::uint64_t requests_min) {
  Outlook outlook;
  outlook.losses = falling_losses(random, whole(random, 2, count_max));
  outlook.requests = whole(random, requests_min, 4 * requests_min + 100);
  outlook.timing.step_s = exact_seconds(random, 1, 64);
  outlook.timing.save_s = exact_seconds(random, 0, whole(random, 0, 1) == 1 ? 64 : 2000);
  outlook.timing.load_s = exact_seconds(random, 0, 640);
  outlook.timing.request_s = exact_seconds(random, 1, 64);
  if (whole(random, 0, 3) == 0)
    outlook.soonest = static_cast<std::uint32_t>(whole(random, 1, outlook.losses.size() - 1));
  return outlook;
}

// Requests that last 0.3 to 3 times as long as the training.
Outlook timed_outlook(Random& random, std::size_t count_max) {
  Outlook outlook;
  outlook.losses = falling_losses(random, whole(random, 8, count_max));
  const auto count = static_cast<double>(outlook.losses.size());
  outlook.timing.step_s = real(random, 0.01, 1);
  outlook.timing.save_s = outlook.timing.step_s * std::exp(real(random, std::log(0.01), std::log(count)));
  outlook.timing.load_s = outlook.timing.step_s * real(random, 0, count / 4);
  outlook.requests = whole(random, 2'000, 100'000);
  outlook.timing.request_s =
      count * outlook.timing.step_s * real(random, 0.3, 3) / static_cast<double>(outlook.requests);
  return outlook;
}

}  // namespace

TEST_CASE("the cumulative loss is that of a simulation of all events, in 1,000 random cases") {
  const std::uint64_t seed = weft::testing::test_seed();
  INFO("WEFT_TEST_SEED=", seed);
  Random random(seed);
  for (int i = 0; i < 1000; ++i) {
    const Outlook outlook = random_outlook(random, 80, 300);
    const Saves saves = some_saves(random, outlook);
    CAPTURE(i);
    CHECK(cumulative_loss(outlook, saves) == doctest::Approx(simulated_loss(outlook, saves)).epsilon(1e-10));
    CHECK(paper_loss(outlook, saves) == doctest::Approx(simulated_paper_loss(outlook, saves)).epsilon(1e-10));
  }
}

TEST_CASE("the fixed interval is the best of all by the paper's count") {
  const std::uint64_t seed = weft::testing::test_seed();
  INFO("WEFT_TEST_SEED=", seed);
  Random random(seed);
  for (int i = 0; i < 200; ++i) {
    const Outlook outlook = random_outlook(random, 60, 300);
    std::uint32_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t interval = 1; interval < outlook.losses.size(); ++interval) {
      Saves saves;
      for (std::uint32_t j = interval; j < outlook.losses.size(); j += interval)
        if (j >= outlook.soonest) saves.push_back(j);
      if (interval < outlook.soonest) continue;  // this schedule starts at another phase: see below
      if (const double loss = simulated_paper_loss(outlook, saves); loss < least * (1 - 1e-12)) {
        least = loss;
        best = interval;
      }
    }
    const std::uint32_t fixed = fixed_interval(outlook);
    CAPTURE(i);
    if (outlook.soonest == 1) CHECK(fixed == best);
    CHECK(paper_loss(outlook, regular_saves(outlook, fixed)) <= least * (1 + 1e-12));
  }
}

TEST_CASE("a regular schedule whose first save is past begins now") {
  Outlook outlook{{9, 8, 7, 6, 5, 4, 3, 2, 1}, 4, 10, {1, 1, 1, 1}};
  CHECK(regular_saves(outlook, 3) == Saves{4, 7});
  CHECK(regular_saves(outlook, 5) == Saves{5});
  CHECK(regular_saves(outlook, 9).empty());
}

TEST_CASE("our saves are within 1 % of the exact program in 100 random cases, and no worse than regular ones") {
  const std::uint64_t seed = weft::testing::test_seed();
  INFO("WEFT_TEST_SEED=", seed);
  Random random(seed);
  double worst = 0;
  for (int i = 0; i < 100; ++i) {
    const Outlook outlook = timed_outlook(random, 70);
    const double loss = cumulative_loss(outlook, best_saves(outlook));
    const double least = least_loss(outlook);
    worst = std::max(worst, loss / least - 1);
    CAPTURE(i);
    CHECK(loss >= least * (1 - 1e-12));
    CHECK(loss <= least * 1.01);
    for (std::uint32_t interval = 1; interval < outlook.losses.size(); ++interval)
      CHECK(loss <= cumulative_loss(outlook, regular_saves(outlook, interval)) * 1.001);
  }
  MESSAGE("at most ", worst * 100, " % above the exact program");
}

TEST_CASE("our saves begin at the soonest") {
  Random random(5);
  for (int i = 0; i < 100; ++i) {
    Outlook outlook = timed_outlook(random, 70);
    outlook.soonest = static_cast<std::uint32_t>(whole(random, 1, outlook.losses.size() - 1));
    const Saves saves = best_saves(outlook);
    CAPTURE(i);
    CHECK(std::is_sorted(saves.begin(), saves.end()));
    CHECK((saves.empty() || (saves.front() >= outlook.soonest && saves.back() < outlook.losses.size())));
    CHECK(cumulative_loss(outlook, saves) <= least_loss(outlook) * 1.01);
  }
}

TEST_CASE("the paper's run TC1: a stall costs little, and regular saves are nearly the best") {
  for (const double save_s : {0.08, 1.375, 3.75}) {
    Outlook outlook;
    for (int j = 0; j <= 3456; ++j) outlook.losses.push_back(2.2 * std::exp(-j / 900.0) + 0.35);
    outlook.requests = 50'000;
    outlook.timing = {0.07, save_s, save_s, 0.01};
    const double best = cumulative_loss(outlook, best_saves(outlook));
    CHECK(best <= cumulative_loss(outlook, regular_saves(outlook, 216)));
    CHECK(best <= cumulative_loss(outlook, regular_saves(outlook, fixed_interval(outlook))) * 1.0001);
  }
}

TEST_CASE("saves that cost nothing are made after each iteration, and none that no request would meet") {
  Outlook outlook{{9, 8, 7, 6, 5, 4, 3, 2, 1}, 1, 1000, {1, 0, 0, 0.1}};
  CHECK(best_saves(outlook) == Saves{1, 2, 3, 4, 5, 6, 7, 8});
  outlook.timing.load_s = 1000;
  CHECK(best_saves(outlook).empty());
  outlook.timing.load_s = 0;
  outlook.requests = 35;  // they end at 3.5 s
  CHECK(best_saves(outlook) == Saves{1, 2, 3});
}

TEST_CASE("losses that no longer fall are not saved") {
  Outlook outlook{{5, 1, 1, 1, 1, 1}, 1, 1000, {1, 0.5, 0, 0.1}};
  CHECK(best_saves(outlook) == Saves{1});
  outlook.losses = {1, 1, 1, 1};
  CHECK(best_saves(outlook).empty());
  CHECK(greedy_saves(outlook, 0).empty());
}

TEST_CASE("the greedy schedule saves when the loss has fallen by more than the threshold") {
  const Outlook outlook{{10, 9, 8.5, 7, 6.9, 5, 4.9}, 1, 10, {1, 1, 1, 1}};
  CHECK(greedy_saves(outlook, 1) == Saves{2, 3, 5});
  std::vector<LossPoint> points(3);
  points[0].loss = 4;
  points[1].loss = 3;
  points[2].loss = 6;
  CHECK(greedy_threshold(points) == doctest::Approx(2 + 1));  // mean + standard deviation of the changes 1 and 3
}

TEST_CASE("the largest outlook of the limits is counted without overflow") {
  Outlook outlook{{1e15, 1, 0}, 1, 1'000'000'000'000'000, {1e11, 1e11, 1e11, 1e-12}};
  CHECK(std::isfinite(cumulative_loss(outlook, best_saves(outlook))));
  CHECK(std::isfinite(paper_loss(outlook, Saves{1, 2})));
}
