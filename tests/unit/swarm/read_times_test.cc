#include "swarm/read_times.h"

#include <doctest/doctest.h>

#include <chrono>

namespace weft::testing {

using std::chrono::milliseconds;

TEST_CASE("a read is slow after a fixed time, or after some times as long as reads usually take") {
  ReadTimes times;
  CHECK(!times.slow_after());
  times.add(milliseconds(1));
  CHECK(times.slow_after() == ReadTimes::kSlowRead);
  times.add(milliseconds(8'001));  // the usual time is now 1,001 ms
  CHECK(times.slow_after() == ReadTimes::kSlowTimes * milliseconds(1'001));
}

}  // namespace weft::testing
