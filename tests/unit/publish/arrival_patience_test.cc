#include "publish/arrival_patience.h"

#include <doctest/doctest.h>

#include "fakes/manual_time.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

struct Waits {
  ManualTime time;
  ArrivalPatience patience{time};

  bool wait(Deadline::duration duration, std::uint64_t bytes) {
    patience.begin();
    time.pass(duration);
    return patience.end(bytes);
  }
};

}  // namespace

TEST_CASE("an import waits for an hour without news, in all its waits together") {
  Waits waits;
  CHECK(waits.wait(30min, 0));
  waits.time.pass(10h);  // between two waits the import has work of its own
  CHECK(waits.wait(29min, 0));
  CHECK_FALSE(waits.wait(1min, 0));
}

TEST_CASE("bytes renew the patience, and no number of them saves more than an hour") {
  Waits waits;
  CHECK(waits.wait(59min, UINT64_MAX));
  CHECK(waits.wait(59min, 1U << 30U));
  CHECK_FALSE(waits.wait(60min, 0));
}

TEST_CASE("news that come too slowly use it up") {
  Waits waits;
  int waited = 0;
  while (waits.wait(1min, 1) && waited < 100) ++waited;
  CHECK(waited == 60);
  Waits slow;
  for (int i = 0; i < 1000; ++i) CHECK(slow.wait(1min, 60 * ArrivalPatience::kBytesPerSecondMin));
}

TEST_CASE("each byte counts, also if the news come in small parts") {
  Waits waits;
  for (int i = 0; i < 100'000; ++i) REQUIRE(waits.wait(100ms, ArrivalPatience::kBytesPerSecondMin / 8));
}

}  // namespace weft::testing
