#include <doctest/doctest.h>

#include "cluster_parts.h"
#include "store/cluster/store_ledger.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Room : ClusterParts {
  void pin(bool pinned) const {
    const WriterLock lock = must(parts->index.lock());
    const VersionRow row = version("a", 1);
    must(parts->index.commit(lock, [&](Txn& txn) { return set_note(txn, row, VersionNote::pinned, pinned); }));
  }
  StoreLedger ledger{*parts};
};

}  // namespace

TEST_CASE("a mirrored version gets its content by adoption") {
  Room room;
  room.deliver(record("a", 1, {{1}}));
  CHECK(room.has_note(kIncomplete, room.version("a", 1).id));
  room.adopt("a", 1, {{1}});
  CHECK_FALSE(room.has_note(kIncomplete, room.version("a", 1).id));
  CHECK(room.mirror.join({"other", std::string(kHere)}).error().code == Errc::exists);
}

TEST_CASE("the cache evicts packs, except those of pinned versions, whatever was pinned when it was asked last") {
  Room room;
  room.deliver(record("a", 1, {{1}}));
  room.deliver(record("b", 1, {{2}}));
  room.adopt("a", 1, {{1}});
  room.adopt("b", 1, {{2}});
  const PackId first = room.fetch(1);
  const auto pinned = [&] {
    std::vector<PackId> packs;
    for (const CachedPack& pack : must(room.cache.cached_packs()))
      if (pack.pinned) packs.push_back(pack.id);
    return packs;
  };
  CHECK(pinned().empty());
  room.pin(true);
  CHECK(pinned() == std::vector{first});
  CHECK(pinned() == std::vector{first});
  room.fetch(2);
  CHECK(pinned() == std::vector{first});
  CHECK(must(room.cache.evict({})).packs == 1);
  CHECK(room.finds(1));
  CHECK_FALSE(room.finds(2));
  room.pin(false);
  CHECK(pinned().empty());
  CHECK(must(room.cache.evict({})).packs == 1);
  CHECK_FALSE(room.finds(1));
}

TEST_CASE("the ledger lists the events that an origin lacks") {
  Room room;
  room.deliver_own("a", 1, {{1}});
  const VersionId id = room.version("a", 1).id;
  CHECK(room.has_note(kUnsaved, id));
  must(room.ledger.saved({&id, 1}));
  CHECK_FALSE(room.has_note(kUnsaved, id));
  must(room.ledger.set_origin("an origin"));
  CHECK(must(room.ledger.origin()) == "an origin");
  CHECK(room.has_note(kUnsaved, id));
  CHECK(must(room.ledger.replicated("an origin")) == 0);
  const CatalogEvents batch = must(room.ledger.events(0));
  REQUIRE(batch.events.size() == 1);
  must(room.ledger.set_replicated("an origin", batch.end));
  CHECK(must(room.ledger.replicated("an origin")) == batch.end);
  CHECK(must(room.ledger.events(batch.end)).events.empty());
}
