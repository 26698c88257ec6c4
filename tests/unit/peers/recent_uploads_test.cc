#include "peers/recent_uploads.h"

#include <doctest/doctest.h>

#include "base/sha256.h"
#include "testing.h"

namespace weft::testing {
namespace {

ContentId blob(std::uint64_t name, std::uint64_t chunks) {
  return {chunks * kDigestChunk, sha256(random_bytes(8, name))};
}

}  // namespace

TEST_CASE("a node that yields is refused the chunks that another node just received, for a while") {
  RecentUploads uploads;
  const auto begin = RecentUploads::Clock::now();
  const ChunkRun run{blob(1, 4), 1, 2};
  const ChunkRun overlapping{blob(1, 4), 2, 2};
  CHECK(uploads.record("one", std::span(&run, 1), true, begin));
  CHECK_FALSE(uploads.record("two", std::span(&overlapping, 1), true, begin));
  CHECK(uploads.record("two", std::span(&overlapping, 1), true, begin + RecentUploads::kFor));
  CHECK_FALSE(uploads.record("one", std::span(&overlapping, 1), true, begin + RecentUploads::kFor));
}

TEST_CASE("chunks of another blob, and neighbouring chunks, are no recent uploads") {
  RecentUploads uploads;
  const ChunkRun run{blob(1, 4), 1, 1};
  const ChunkRun before{blob(1, 4), 0, 1};
  const ChunkRun other{blob(2, 4), 1, 1};
  CHECK(uploads.record("one", std::span(&run, 1), false));
  CHECK(uploads.record("two", std::span(&before, 1), true));
  CHECK(uploads.record("two", std::span(&other, 1), true));
}

TEST_CASE("a forgotten upload refuses nobody") {
  RecentUploads uploads;
  const ChunkRun run{blob(1, 4), 1, 2};
  CHECK(uploads.record("one", std::span(&run, 1), true));
  uploads.forget("two", std::span(&run, 1));
  CHECK_FALSE(uploads.record("two", std::span(&run, 1), true));
  uploads.forget("one", std::span(&run, 1));
  CHECK(uploads.record("two", std::span(&run, 1), true));
}

TEST_CASE("the number of records is bounded") {
  RecentUploads uploads;
  for (std::uint64_t i = 0; i < 3 * RecentUploads::kChunksMax; ++i) {
    const ChunkRun run{blob(1, 4 * RecentUploads::kChunksMax), i, 1};
    REQUIRE(uploads.record("one", std::span(&run, 1), false));
    REQUIRE(uploads.chunks() <= RecentUploads::kChunksMax);
  }
}

}  // namespace weft::testing
