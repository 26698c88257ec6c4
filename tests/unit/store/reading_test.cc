#include <doctest/doctest.h>

#include "parts_support.h"
#include "store/publishing/publisher.h"
#include "store/reading/queries.h"

using namespace weft;
using namespace weft::testing;

TEST_CASE("queries of a store's parts") {
  TestParts test;
  const std::uint64_t begin = must(test.parts->index.journal_end());
  must(publish(*test.parts, "m", {{1, 2}}));
  must(publish(*test.parts, "m", {{2, 3}}));
  CHECK(must(must(open_snapshot(*test.parts))->models()).rows.size() == 1);
  const StoreCounts counts = must(count_store(*test.parts));
  CHECK(counts.versions == 2);
  CHECK(counts.blobs == 3);
  const CommitBatch batch = must(commits_from(*test.parts, begin));
  REQUIRE(batch.commits.size() == 2);
  CHECK(batch.commits[1].number == 2);
  CHECK(batch.next == must(test.parts->index.journal_end()));
}

TEST_CASE("a hold keeps a removed version open") {
  TestParts test;
  must(publish(*test.parts, "m", {{1}}));
  const VersionId id = test.version("m", 1).id;
  const auto hold = must(hold_version(*test.parts, id));
  const VersionName name{"m", 1};
  must(remove_versions(*test.parts, {&name, 1}, Tagged::removed));
  CHECK(must(count_open_removed(*test.parts)) == 1);
  CHECK(hold_version(*test.parts, id + 1).error().code == Errc::not_found);
}
