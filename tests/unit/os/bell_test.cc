#include "os/bell.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <atomic>
#include <thread>

namespace weft {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST_CASE("a bell that rang before is heard, once") {
  const Bell bell;
  bell.ring();
  bell.ring();
  const auto begun = Clock::now();
  bell.wait(begun + 20s);
  CHECK(Clock::now() < begun + 10s);
  const auto again = Clock::now();
  bell.wait(again + 20ms);
  CHECK(Clock::now() >= again + 20ms);
}

TEST_CASE("no ring is lost, however fast they follow") {
  constexpr int kTimes = 10'000;
  const Bell there;
  const Bell back;
  std::atomic<int> sent{0};
  std::atomic<int> seen{0};
  std::thread other([&] {
    for (int i = 1; i <= kTimes; ++i) {
      while (sent < i) there.wait(Clock::now() + 20s);
      seen = i;
      back.ring();
    }
  });
  const auto begun = Clock::now();
  for (int i = 1; i <= kTimes; ++i) {
    sent = i;
    there.ring();
    while (seen < i) back.wait(Clock::now() + 20s);
  }
  other.join();
  CHECK(Clock::now() < begun + 20s);
}

TEST_CASE("ringing a bell without a reader never blocks") {
  const Bell bell;
  for (int i = 0; i < 100'000; ++i) bell.ring();
  const auto begun = Clock::now();
  bell.wait(begun + 20s);
  CHECK(Clock::now() < begun + 10s);
}

TEST_CASE("a poll of a bell sees each ring until clear()") {
  const Bell bell;
  REQUIRE(bell.valid());
  const auto rang = [&bell] {
    pollfd event{bell.fd(), POLLIN, 0};
    return ::poll(&event, 1, 0) == 1;
  };
  CHECK_FALSE(rang());
  for (int i = 0; i < 1'000; ++i) bell.ring();
  CHECK(rang());
  CHECK(rang());
  bell.clear();
  CHECK_FALSE(rang());
}

}  // namespace
}  // namespace weft
