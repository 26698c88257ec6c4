#include "fetch/fetched_bytes.h"

#include <doctest/doctest.h>

#include "made_transfer.h"

namespace weft::testing {

TEST_CASE("a node serves runs of its store, and those that a transfer has fetched") {
  CachingStore store;
  const FetchOptions options;
  FetchSources sources({}, options.patience);
  FetchState state(options, sources, [] {});
  FetchedBytes bytes(store, store, sources, state);
  const ContentId stored = store.add_blob(77, store.add_pack(std::string(500, 'a')), 100, 400);
  const auto transfer = made_transfer(store, {100, 2 * kDigestChunk});
  const ContentId coming = transfer->plan.blobs[1].id;
  store.add_absent(coming);
  {
    const MutexLock lock(state.mutex);
    state.table.add(transfer);
    transfer->begin(2);
    transfer->arrive(2, {});
  }
  const std::vector<ChunkRun> runs{{coming, 1, 1}, {stored, 0, 1}, {coming, 0, 1}};
  const auto places = must(bytes.here(runs));
  REQUIRE(places.size() == 3);
  CHECK(places[0].pack == transfer->reader);
  CHECK(places[0].offset == 100 + kDigestChunk);
  REQUIRE(places[1].pack);
  CHECK(places[1].offset == 100);
  CHECK(!places[2].pack);
  CHECK(bytes.is_coming(coming));
  CHECK(!bytes.is_coming(stored));
}

}  // namespace weft::testing
