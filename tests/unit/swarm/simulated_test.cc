// The simulator of swarms (bench/swarm_world.h): a run of 256 nodes with deaths, whose log is the same on every
// machine.
#include <doctest/doctest.h>

#include <cstdint>

#include "bench/swarm_world.h"

namespace weft::sim {
namespace {

constexpr std::uint32_t kNodes = 256, kDying = 13, kSlow = 26;
constexpr std::uint64_t kSize = 64U << 20U;
// WorldResult::digest of simulated(1). A change of the rule or of the simulator's model changes it: then the tables of
// `scripts/bench swarm` change too.
constexpr std::uint64_t kDigest = 1566721228085998761;

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

}  // namespace weft::sim
