#include "fetch/rate_meter.h"

#include <doctest/doctest.h>

namespace weft::testing {
namespace {

using namespace std::chrono_literals;
constexpr std::uint64_t kMega = 1'000'000;

RateMeter::Clock::time_point at(std::chrono::milliseconds time) {
  return RateMeter::Clock::time_point(1h) + time;
}

}  // namespace

TEST_CASE("rate: nothing is known before bytes came for long enough to tell") {
  RateMeter meter;
  CHECK(meter.bytes_per_s() == 0);
  meter.arrived(kMega, at(0ms), at(1ms));
  CHECK(meter.bytes_per_s() == 0);
}

TEST_CASE("rate: transfers that overlap count together") {
  RateMeter meter;
  for (int i = 1; i <= 20; ++i) meter.arrived(4 * kMega, at(std::chrono::milliseconds(10 * i - 30)), at(10ms * i));
  const double rate = static_cast<double>(meter.bytes_per_s());
  CHECK(rate > 350e6);
  CHECK(rate < 450e6);
}

TEST_CASE("rate: pauses do not count, and a change shows soon") {
  RateMeter meter;
  auto now = 0ms;
  for (int i = 0; i < 10; ++i, now += 10s) meter.arrived(100 * kMega, at(now), at(now + 100ms));
  CHECK(meter.bytes_per_s() == 1000 * kMega);
  for (int i = 0; i < 8; ++i, now += 100ms) meter.arrived(kMega, at(now), at(now + 100ms));
  CHECK(meter.bytes_per_s() < 20 * kMega);
}

}  // namespace weft::testing
