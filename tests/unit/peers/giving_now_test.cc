#include "peers/giving_now.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "testing.h"

namespace weft::testing {
namespace {

using Gift = std::shared_ptr<const void>;

std::vector<Gift> gifts(GivingNow& giving, std::string_view node, std::size_t count) {
  std::vector<Gift> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(giving.begin(node, true));
  return out;
}

}  // namespace

TEST_CASE("a single requester never waits, nor does one that cannot") {
  GivingNow giving;
  const auto own = gifts(giving, "one", 3 * GivingNow::kAtOnceMax);
  for (const Gift& gift : own) CHECK(gift);
  CHECK(giving.begin("two", false));
}

TEST_CASE("a waiting requester gets the next free upload slot") {
  GivingNow giving;
  auto others = gifts(giving, "one", GivingNow::kAtOnceMax);
  const auto begin = GivingNow::Clock::now();
  std::atomic<bool> given = false;
  std::thread waiter([&] {
    const Gift gift = giving.begin("two", true);
    given = gift != nullptr;
  });
  while (giving.waiting() == 0 && GivingNow::Clock::now() < begin + GivingNow::kWaits) std::this_thread::yield();
  CHECK_FALSE(given);
  others.pop_back();
  waiter.join();
  CHECK(given);
  CHECK(giving.waiting() == 0);
}

TEST_CASE("the number of waiting requesters and their wait are bounded") {
  GivingNow giving;
  const auto others = gifts(giving, "one", GivingNow::kAtOnceMax);
  std::atomic<std::size_t> given = 0;
  std::atomic<std::size_t> refused = 0;
  std::vector<std::thread> waiters;
  for (std::size_t i = 0; i < 2 * GivingNow::kWaitingMax; ++i)
    waiters.emplace_back([&] { ++(giving.begin("two", true) ? given : refused); });
  for (std::thread& waiter : waiters) waiter.join();
  CHECK(given >= GivingNow::kWaitingMax);
  CHECK(given + refused == 2 * GivingNow::kWaitingMax);
  CHECK(giving.waiting() == 0);
}

TEST_CASE("running uploads are counted, and may outlive the counter") {
  Gift last;
  {
    GivingNow giving;
    CHECK_FALSE(giving.is_busy());
    auto some = gifts(giving, "one", GivingNow::kBusy);
    CHECK(giving.is_busy());
    last = std::move(some.back());
    some.clear();
    CHECK_FALSE(giving.is_busy());
  }
  last.reset();
}

}  // namespace weft::testing
