// The simulator of swarms (bench/swarm_world.h): a run of 256 nodes with deaths, whose log is the same on every
// machine.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "bench/swarm_events.h"
#include "bench/swarm_world.h"
#include "swarm/swarm_types.h"

namespace weft::sim {
namespace {

constexpr std::uint32_t kNodes = 256, kDying = 13, kSlow = 26;
constexpr std::uint64_t kSize = 64U << 20U;
// WorldResult::digest of simulated(1). A change of the rule or of the simulator's model changes it: then the tables of
// `scripts/bench swarm` change too.
constexpr std::uint64_t kDigest = 3253533792671441289U;

WorldResult simulated(std::uint64_t seed) {
  WorldOptions options;
  options.nodes = kNodes;
  options.size = kSize;
  options.deaths = static_cast<double>(kDying) / kNodes;
  options.slow = static_cast<double>(kSlow) / kNodes;
  options.network.bits_per_second = 1'000'000'000;
  options.silent = 1;
  options.seed = seed;
  return World(options).run();
}

}  // namespace

TEST_CASE("events come in the order of their times, and those of one time as they were added") {
  constexpr std::uint64_t kEvents = 20'000;
  SwarmRandom random(1);
  EventQueue queue;
  std::vector<std::pair<Nanoseconds, std::uint64_t>> added, came;
  Nanoseconds now = 0;
  while (came.size() < kEvents) {
    for (std::size_t more = random.below(4); more > 0 && added.size() < kEvents; --more) {
      // Delays of zero, of nanoseconds and of minutes.
      const Nanoseconds at = now + static_cast<Nanoseconds>(random.below(std::size_t{1} << random.below(38)));
      queue.push({.at = at, .what = added.size()});
      added.emplace_back(at, added.size());
    }
    REQUIRE(queue.empty() == (added.size() == came.size()));
    if (queue.empty()) continue;
    const Event event = queue.pop();
    now = event.at;
    came.emplace_back(event.at, event.what);
  }
  std::sort(added.begin(), added.end());
  CHECK(came == added);
}

TEST_CASE("a simulated run of 256 nodes with deaths is the same on every machine") {
  const WorldResult result = simulated(1);
  CHECK(result.unfinished == 0);
  CHECK(result.slow_seconds.size() == kSlow);
  // A node that ends before its death is due lives on.
  CHECK(result.seconds.size() >= kNodes - kSlow - kDying);
  CHECK(result.seconds.size() < kNodes - kSlow);
  CHECK(result.units >= (kNodes - kDying) * (kSize >> 20U));
  CHECK(simulated(1).digest == result.digest);
  CHECK(simulated(2).digest != result.digest);
  REQUIRE_MESSAGE(kDigest != 0, "kDigest is not filled in; this build gives ", result.digest);
  CHECK(result.digest == kDigest);
}

TEST_CASE("simulated nodes do not wait for partners that are silent for ever") {
  WorldOptions options;
  options.nodes = 16;
  options.size = kSize;
  options.deaths = 0.25;
  options.network.bits_per_second = 1'000'000'000;
  options.silent = 1'000;
  const WorldResult result = World(options).run();
  CHECK(result.unfinished == 0);
  CHECK(result.last_end < options.silent);
  CHECK(result.slow_reads + result.silent_wants + result.from_holders + result.left > 0);
}

}  // namespace weft::sim
