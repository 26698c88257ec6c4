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

TEST_CASE("a chunk that was sent a moment ago is refused to other yielding nodes") {
  GivenLately given;
  const auto begin = GivenLately::Clock::now();
  const ChunkRun run{blob(1, 4), 1, 2};
  const ChunkRun overlapping{blob(1, 4), 2, 2};
  CHECK(given.give("one", std::span(&run, 1), true, begin));
  CHECK_FALSE(given.give("two", std::span(&overlapping, 1), true, begin));
  CHECK(given.give("two", std::span(&overlapping, 1), true, begin + GivenLately::kFor));
  CHECK_FALSE(given.give("one", std::span(&overlapping, 1), true, begin + GivenLately::kFor));
}

TEST_CASE("other chunks and other blobs are not refused") {
  GivenLately given;
  const ChunkRun run{blob(1, 4), 1, 1};
  const ChunkRun before{blob(1, 4), 0, 1};
  const ChunkRun other{blob(2, 4), 1, 1};
  CHECK(given.give("one", std::span(&run, 1), false));
  CHECK(given.give("two", std::span(&before, 1), true));
  CHECK(given.give("two", std::span(&other, 1), true));
}

TEST_CASE("a chunk whose upload failed is not refused") {
  GivenLately given;
  const ChunkRun run{blob(1, 4), 1, 2};
  CHECK(given.give("one", std::span(&run, 1), true));
  given.forget("two", std::span(&run, 1));
  CHECK_FALSE(given.give("two", std::span(&run, 1), true));
  given.forget("one", std::span(&run, 1));
  CHECK(given.give("two", std::span(&run, 1), true));
}

TEST_CASE("the memory of sent chunks is bounded") {
  GivenLately given;
  for (std::uint64_t i = 0; i < 3 * GivenLately::kChunksMax; ++i) {
    const ChunkRun run{blob(1, 4 * GivenLately::kChunksMax), i, 1};
    REQUIRE(given.give("one", std::span(&run, 1), false));
    REQUIRE(given.chunks() <= GivenLately::kChunksMax);
  }
}

}  // namespace weft::testing
