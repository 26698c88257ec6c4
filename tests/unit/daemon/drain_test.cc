#include <doctest/doctest.h>

#include <chrono>

#include "daemon/background/drain_watch.h"

namespace weft {

TEST_CASE("a drain is idle while every version that was left is still left") {
  using std::chrono::seconds;
  const DrainWatch::Clock::time_point start{seconds(1'000)};
  DrainWatch watch;
  CHECK(watch.idle({{"a", 1}, {"b", 1}}, start) == seconds(0));
  CHECK(watch.idle({{"a", 1}, {"b", 1}}, start + seconds(10)) == seconds(10));
  CHECK(watch.idle({{"a", 1}, {"b", 1}, {"c", 1}}, start + seconds(20)) == seconds(20));  // a new one moved nothing
  CHECK(watch.idle({{"a", 1}, {"c", 1}}, start + seconds(30)) == seconds(0));
  CHECK(watch.idle({{"a", 1}, {"c", 1}}, start + seconds(45)) == seconds(15));
}

}  // namespace weft
