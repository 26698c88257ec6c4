#include "fetch/fetch_planner.h"

#include <doctest/doctest.h>

#include "away.h"
#include "fetch/fetched_bytes.h"

namespace weft::testing {
namespace {

struct Planning {
  Away away;
  FetchOptions options;
  FetchSources sources{{away.twin}, options.patience};
  ManifestFetch manifests{away.store, away.store, sources, options};
  FetchState state{options, sources, [] {}};
  FetchedBytes bytes{away.store, away.store, sources, state};
  FetchBases bases{{away.store, manifests, sources, bytes, [](const ContentId&) { return false; }, {}}};
  FetchPlanner planner{away.store, away.store, sources, bases, state, options};
  std::shared_ptr<const DecodedVersion> content;

  explicit Planning(const std::vector<std::size_t>& sizes) : away(sizes) {
    content = must(manifests.content(away.version));
  }
  std::size_t transfers() {
    const MutexLock lock(state.mutex);
    return state.table.size();
  }
};

}  // namespace

TEST_CASE("the missing extents of a file share one transfer, whose pack is laid out as the file") {
  Planning one({2 * kDigestChunk, 300, kDigestChunk});
  const auto parts = must(one.planner.parts_of(*one.content, 0, {10, 2 * kDigestChunk}));
  REQUIRE(parts.size() == 2);
  const auto transfer = parts[0].home.transfer;
  REQUIRE(transfer);
  CHECK(parts[1].home.transfer == transfer);
  CHECK(parts[1].home.offset == 2 * kDigestChunk);
  CHECK(parts[1].same_file);
  CHECK(transfer->plan.blobs.size() == 3);
  CHECK(transfer->subject == "model@1: model.bin");
  CHECK(must(one.planner.parts_of(*one.content, 0, {0, 1})).front().home.transfer == transfer);
  CHECK(one.planner.begin(*one.content, 0).ok());
  CHECK(one.transfers() == 1);
}

TEST_CASE("blobs that have reached the index are local, and others stay in their transfer") {
  Planning one({kDigestChunk, 300});
  const auto transfer = must(one.planner.parts_of(*one.content, 0, {0, 1})).front().home.transfer;
  transfer->begin(1);
  const auto bytes = as_bytes(one.away.bytes).subspan(kDigestChunk);
  transfer->arrive(1, digests_of(std::span(&transfer->plan.units[1].run, 1), bytes).front());
  const auto whole = transfer->take_whole();
  REQUIRE(transfer->pack->add(whole).ok());
  {
    const MutexLock lock(one.state.mutex);
    one.state.table.added(*transfer, whole, {});
  }
  const auto parts = must(one.planner.parts_of(*one.content, 0, {0, kDigestChunk + 300}));
  REQUIRE(parts.size() == 2);
  CHECK(!parts[0].place.pack);
  CHECK(parts[0].home.transfer == transfer);
  CHECK(parts[1].place.pack);
}

TEST_CASE("a version that was published long ago is not young, and without swarms none brings it") {
  Planning one({300});
  const auto transfer = must(one.planner.parts_of(*one.content, 0, {0, 300})).front().home.transfer;
  CHECK(transfer->young_until <= Transfer::Clock::now());  // published long ago
  CHECK(!transfer->may_swarm);
}

}  // namespace weft::testing
