// A worker repeats its round, pauses as the round says, pauses longer after each failure, and ends when it is asked to.
#include "base/worker.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <memory>
#include <semaphore>

#include "fakes/stepped_time.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

constexpr RetryPause kRetry{1s, 5s};

TEST_CASE("a worker runs a round at its start, after each pause, and when it is woken") {
  SteppedTime time;
  std::atomic<int> rounds = 0;
  Worker worker("test", kRetry, time);
  REQUIRE(worker.start([&] { return ++rounds < 3 ? Worker::Pause(10s) : Worker::kUntilWoken; }));
  CHECK(time.next_pause() == 10s);
  CHECK(rounds == 1);
  time.pass(4s);
  CHECK(time.next_pause() == 6s);
  CHECK(rounds == 1);
  time.pass(6s);
  CHECK(time.next_pause() == 10s);
  CHECK(rounds == 2);
  time.pass(10s);
  CHECK(time.next_pause() == SteppedTime::kForever);
  CHECK(rounds == 3);
}

TEST_CASE("a wake before the start or in a round is not lost") {
  SteppedTime time;
  std::atomic<int> rounds = 0;
  Worker worker("test", kRetry, time);
  worker.wake();
  REQUIRE(worker.start([&] {
    if (++rounds == 2) worker.wake();
    return Worker::kUntilWoken;
  }));
  CHECK(time.next_pause() == SteppedTime::kForever);
  CHECK(rounds == 3);  // the first, the one for the early wake, the one for the wake in the second
}

TEST_CASE("the pause after a failure doubles up to its bound, and a success resets it") {
  SteppedTime time;
  std::atomic<bool> fails = true;
  Worker worker("test", kRetry, time);
  REQUIRE(worker.start([&]() -> Result<Worker::Pause> {
    if (fails) return Error{Errc::io, "broken"};
    return Worker::Pause(7s);
  }));
  for (const auto pause : {1s, 2s, 4s, 5s, 5s}) {
    CHECK(time.next_pause() == pause);
    CHECK(worker.problem() == "broken");
    if (pause == 5s && fails.exchange(false)) break;
    time.pass(pause);
  }
  time.pass(5s);
  CHECK(time.next_pause() == 7s);
  CHECK(worker.problem().empty());
  fails = true;
  time.pass(7s);
  CHECK(time.next_pause() == 1s);
}

TEST_CASE("end() waits for the running round, which sees it, and no round starts after it") {
  std::promise<void> begun;
  std::atomic<int> rounds = 0;
  Worker worker("test");
  REQUIRE(worker.start([&] {
    if (++rounds == 1) begun.set_value();
    while (!worker.ending()) std::this_thread::yield();
    return Worker::Pause(0);
  }));
  begun.get_future().wait();
  worker.wake();
  worker.end();
  CHECK(rounds == 1);
  CHECK_FALSE(worker.start([] { return Worker::kUntilWoken; }));
}

TEST_CASE("the end interrupts a round that waits") {
  std::counting_semaphore interrupted(0);
  Worker worker("test");
  REQUIRE(worker.start(
      [&] {
        interrupted.acquire();
        return Worker::kUntilWoken;
      },
      [&] { interrupted.release(); }));
  CHECK(worker.end_within(1h));
}

TEST_CASE("a round that hangs is left behind, with what it keeps alive") {
  struct Left {
    std::promise<void> gone;
    Worker worker{"test"};
    ~Left() { gone.set_value(); }
  };
  auto left = std::make_shared<Left>();
  std::promise<void> released;
  auto gone = left->gone.get_future();
  REQUIRE(left->worker.start([left, until = released.get_future().share()] {
    until.wait();
    return Worker::kUntilWoken;
  }));
  CHECK_FALSE(left->worker.end_within(1ms));
  left.reset();
  CHECK(gone.wait_for(0ms) == std::future_status::timeout);
  released.set_value();
  gone.wait();
}

TEST_CASE("a worker that was never started ends at once, and starts no more") {
  Worker worker("test");
  worker.end();
  CHECK_FALSE(worker.start([] { return Worker::kUntilWoken; }));
}

}  // namespace
}  // namespace weft::testing
