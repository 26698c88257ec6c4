#include "monitor/polled.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "fakes/stepped_time.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

// The thread of a round that has begun waits on the clock no more.
void wait_for(const std::atomic<int>& rounds, int count) {
  while (rounds < count) std::this_thread::yield();
}

TEST_CASE("a polled fact is found when a reader asks and the last answer is old") {
  SteppedTime time;
  std::atomic<int> rounds = 0;
  Polled<int> fact(
      "fact", 60s, [&]() -> Result<int> { return ++rounds; }, time);
  CHECK(rounds == 0);
  CHECK(fact.newest().value_or(1) == 1);  // the thread may have found it already
  CHECK(time.next_pause() == Worker::kUntilWoken);
  CHECK(fact.newest() == 1);
  CHECK(fact.newest() == 1);
  CHECK(rounds == 1);
  time.pass(60s);
  CHECK(fact.newest().has_value());
  wait_for(rounds, 2);
  CHECK(time.next_pause() == Worker::kUntilWoken);
  CHECK(fact.newest() == 2);
  CHECK(rounds == 2);
}

TEST_CASE("a polled fact that cannot be found is no fact") {
  SteppedTime time;
  std::atomic<int> rounds = 0;
  std::atomic<bool> fails = false;
  Polled<int> fact(
      "fact", 60s,
      [&]() -> Result<int> {
        ++rounds;
        if (fails) return Error{Errc::io, "broken"};
        return 5;
      },
      time);
  static_cast<void>(fact.newest());
  CHECK(time.next_pause() == Worker::kUntilWoken);
  CHECK(fact.newest() == 5);
  fails = true;
  time.pass(60s);
  static_cast<void>(fact.newest());
  wait_for(rounds, 2);
  CHECK(time.next_pause() == 60s);
  CHECK(!fact.newest().has_value());
}

}  // namespace
}  // namespace weft::testing
