#include "fetch/transfer_table.h"

#include <doctest/doctest.h>

#include "made_transfer.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

struct Table {
  CachingStore store;
  FetchSources sources{{}, 1s};
  SwarmFetch swarm{1s, 4, [] {}};
  FetchQueue queue{swarm, sources, 4};
  TransferTable table{queue, swarm, 1h};

  std::shared_ptr<Transfer> add(const std::vector<std::uint64_t>& lengths) {
    auto transfer = made_transfer(store, lengths);
    table.add(transfer);
    return transfer;
  }
  // Lets all units of a transfer arrive.
  static void fill(Transfer& transfer) {
    for (std::size_t unit = 0; unit < transfer.plan.units.size(); ++unit) {
      transfer.begin(unit);
      transfer.arrive(unit, {});
    }
  }
  void index(const std::shared_ptr<Transfer>& transfer, const Status& added) {
    const auto blobs = transfer->take_whole();
    transfer->adding = true;
    table.added(*transfer, blobs, added);
  }
};

}  // namespace

TEST_CASE("a blob has a place until it is in the index, and its runs have places once all of their bytes are here") {
  Table one;
  const auto transfer = one.add({100, 2 * kDigestChunk});
  const ContentId blob = transfer->plan.blobs[1].id;
  REQUIRE(one.table.find(blob) != nullptr);
  CHECK(one.table.find(blob)->offset == 100);
  CHECK(one.table.fills(transfer->pack->id()));
  const ChunkRun both{blob, 0, 2};
  transfer->begin(1);
  CHECK(one.table.coming_bytes() == kDigestChunk);
  transfer->arrive(1, {});
  CHECK(!one.table.arrived(both).pack);
  CHECK(one.table.arrived({blob, 0, 1}).offset == 100);
  transfer->begin(2);
  transfer->arrive(2, {});
  CHECK(one.table.arrived(both).pack);
  one.index(transfer, {});
  CHECK(one.table.find(blob) == nullptr);
  CHECK(one.table.find(transfer->plan.blobs[0].id) != nullptr);
}

TEST_CASE("complete blobs enter the index when their transfer hurries, and the result is reported once") {
  Table one;
  const auto transfer = one.add({100, 200});
  CHECK(one.table.indexed(1, {}).has_value());
  Table::fill(*transfer);
  CHECK(!one.table.due(false));
  CHECK(one.table.due(true) == transfer);
  CHECK(!one.table.indexed(1, {}));
  CHECK(one.table.due(false) == transfer);
  one.index(transfer, Error{Errc::io, "no index"});
  const auto failed = one.table.indexed(1, {});
  REQUIRE(failed);
  CHECK(!failed->ok());
  REQUIRE(one.table.indexed(1, {}));
  CHECK(one.table.indexed(1, {})->ok());
}

TEST_CASE("blobs that have come for another version are waited for too") {
  Table one;
  const auto transfer = one.add({100, 200});
  Table::fill(*transfer);
  CHECK(one.table.indexed(2, {}).has_value());
  CHECK(!one.table.due(false));
  const ContentId blob = transfer->plan.blobs[1].id;
  const auto others = one.table.holders(std::span(&blob, 1));
  CHECK(!one.table.indexed(2, others));
  CHECK(one.table.due(false) == transfer);
  one.index(transfer, {});
  REQUIRE(one.table.indexed(2, others));
  CHECK(one.table.indexed(2, others)->ok());
}

TEST_CASE("a transfer is dropped if it is complete, closed or unused, and kept while units wait or run") {
  Table one;
  const auto complete = one.add({100});
  const auto queued = one.add({200});
  const auto running = one.add({300});
  Table::fill(*complete);
  one.index(complete, {});
  one.queue.want(queued, 0);
  running->begin(0);
  one.table.drop_idle();
  CHECK(one.table.size() == 2);
  CHECK(!one.table.close_idle());
  one.table.drop_unused(0s);
  CHECK(one.table.size() == 2);
  running->arrive(0, {});
  CHECK(one.table.close_idle());  // its blob enters the index first
  one.index(running, {});
  CHECK(!one.table.close_idle());
  one.table.drop_idle();
  CHECK(one.table.size() == 1);
  CHECK(one.table.fills(queued->pack->id()));
}

}  // namespace weft::testing
