#include "peers/given_lately.h"

#include <doctest/doctest.h>

#include "base/sha256.h"
#include "testing.h"

namespace weft::testing {
namespace {

ContentId blob(std::uint64_t name, std::uint64_t chunks) {
  return {chunks * kDigestChunk, sha256(random_bytes(8, name))};
}

}  // namespace

TEST_CASE("what was given a moment ago is left to who has it, for a moment") {
  GivenLately given;
  const auto begin = GivenLately::Clock::now();
  const ChunkRun run{blob(1, 4), 1, 2};
  const ChunkRun overlapping{blob(1, 4), 2, 2};
  CHECK(given.give("one", std::span(&run, 1), true, begin));
  CHECK_FALSE(given.give("two", std::span(&overlapping, 1), true, begin));
  CHECK(given.give("two", std::span(&overlapping, 1), true, begin + GivenLately::kFor));
  CHECK_FALSE(given.give("one", std::span(&overlapping, 1), true, begin + GivenLately::kFor));
}

TEST_CASE("chunks of another blob, and those beside, were not given") {
  GivenLately given;
  const ChunkRun run{blob(1, 4), 1, 1};
  const ChunkRun before{blob(1, 4), 0, 1};
  const ChunkRun other{blob(2, 4), 1, 1};
  CHECK(given.give("one", std::span(&run, 1), false));
  CHECK(given.give("two", std::span(&before, 1), true));
  CHECK(given.give("two", std::span(&other, 1), true));
}

TEST_CASE("what was not given after all is anybody's again") {
  GivenLately given;
  const ChunkRun run{blob(1, 4), 1, 2};
  CHECK(given.give("one", std::span(&run, 1), true));
  given.forget("two", std::span(&run, 1));
  CHECK_FALSE(given.give("two", std::span(&run, 1), true));
  given.forget("one", std::span(&run, 1));
  CHECK(given.give("two", std::span(&run, 1), true));
}

TEST_CASE("no more is remembered than has room") {
  GivenLately given;
  for (std::uint64_t i = 0; i < 3 * GivenLately::kChunksMax; ++i) {
    const ChunkRun run{blob(1, 4 * GivenLately::kChunksMax), i, 1};
    REQUIRE(given.give("one", std::span(&run, 1), false));
    REQUIRE(given.chunks() <= GivenLately::kChunksMax);
  }
}

}  // namespace weft::testing
