// Random swarms. WEFT_TEST_SEED names the first seed, WEFT_TEST_SEEDS their number.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>

#include "base/text.h"
#include "unit/swarm/world.h"

namespace weft::testing {
namespace {

std::uint64_t number_of(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : parse_u64(text).value_or(otherwise);
}

}  // namespace

TEST_CASE("in random swarms every live node ends, and the rule holds") {
  const std::uint64_t first = number_of("WEFT_TEST_SEED", 1), seeds = number_of("WEFT_TEST_SEEDS", 200);
  std::uint64_t repeats = 0, deaths = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    World world(seed);
    const std::string broken = world.run();
    CHECK_MESSAGE(broken.empty(), "WEFT_TEST_SEED=", seed, ": ", broken);
    repeats += world.repeats();
    deaths += world.deaths();
  }
  // Otherwise the runs would show little.
  if (seeds >= 200) {
    CHECK(repeats > 0);
    CHECK(deaths > 0);
  }
}

TEST_CASE("random swarms that once broke the rule") {
  // An asker whose uploads are aside got no units, but a time of the past was due for it.
  for (const std::uint64_t seed : {796U, 1633U}) CHECK(World(seed).run().empty());
}

}  // namespace weft::testing
