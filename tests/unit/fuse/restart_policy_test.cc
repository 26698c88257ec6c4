#include "fuse/process/restart_policy.h"

#include <doctest/doctest.h>

namespace weft {
namespace {

using std::chrono::seconds;

Loss killed_at_work(std::vector<std::uint64_t> running) {
  return {true, true, 10, std::move(running)};
}

Loss crashed(std::vector<std::uint64_t> running) {
  return {false, true, 10, std::move(running)};
}

}  // namespace

TEST_CASE("servers that are killed at work are followed for ever") {
  RestartPolicy policy;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    CHECK(policy.go_on(killed_at_work({2 * i, 2 * i + 100'000})));
    CHECK(policy.pause().count() == 0);
  }
}

TEST_CASE("the supervisor gives up after a few servers that end before they serve") {
  RestartPolicy policy;
  const Loss early{false, false, 0, {}};
  for (unsigned i = 1; i < RestartPolicy::kFaultsMax; ++i) CHECK(policy.go_on(early));
  CHECK(policy.pause().count() > 0);
  CHECK_FALSE(policy.go_on(early));
}

TEST_CASE("one request that ends each server is given up, though others are answered between") {
  RestartPolicy policy;
  CHECK(policy.go_on(crashed({4, 8})));
  for (unsigned i = 1; i < RestartPolicy::kFaultsMax; ++i) CHECK(policy.go_on(crashed({8, 100 + 2 * i})));
  CHECK_FALSE(policy.go_on(crashed({8})));
}

TEST_CASE("a server that served requests resets the count of failures") {
  RestartPolicy policy;
  for (int round = 0; round < 10; ++round) {
    CHECK(policy.go_on({false, false, 0, {}}));
    CHECK(policy.go_on({false, false, 0, {}}));
    CHECK(policy.go_on(crashed({})));
  }
}

TEST_CASE("being killed before it serves is no fault of the server's, up to a bound") {
  RestartPolicy policy;
  const Loss early{true, false, 0, {}};
  for (unsigned i = 1; i < RestartPolicy::kKillsMax; ++i) REQUIRE(policy.go_on(early));
  CHECK_FALSE(policy.go_on(early));
}

TEST_CASE("a server stands still when work waits and nothing is finished") {
  StallWatch watch(seconds(60));
  const StallWatch::Clock::time_point start{};
  watch.restart(start);
  CHECK_FALSE(watch.stalled(start + seconds(59), 0, true));
  CHECK(watch.stalled(start + seconds(60), 0, true));
  CHECK_FALSE(watch.stalled(start + seconds(61), 1, true));    // a request was finished
  CHECK_FALSE(watch.stalled(start + seconds(120), 1, false));  // no work waits
  CHECK_FALSE(watch.stalled(start + seconds(179), 1, true));
  CHECK(watch.stalled(start + seconds(180), 1, true));
}

TEST_CASE("a limit of 0 finds no server standing still") {
  StallWatch watch(seconds(0));
  CHECK_FALSE(watch.stalled(StallWatch::Clock::time_point{} + seconds(1'000'000), 0, true));
}

}  // namespace weft
