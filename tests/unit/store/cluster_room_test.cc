#include <doctest/doctest.h>

#include "cluster_support.h"
#include "parts_support.h"
#include "store/cluster/store_cache.h"
#include "store/cluster/store_ledger.h"
#include "store/cluster/store_mirror.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Room : TestParts {
  Room() { must(mirror.join({"test", std::string(kHere)})); }
  void mirror_version(const MirrorChange& change, std::uint64_t revision) {
    CHECK(must(mirror.apply(std::span(&change, 1), revision)).problems.empty());
  }
  PackId fetch(unsigned content) {
    const auto pack = must(cache.fetch_pack(content_id(content).length));
    write_content(*pack, content, 0);
    CHECK(must(pack->add(std::vector{fetched(content, 0)})) == 1);
    return pack->id();
  }
  void pin(bool pinned) const {
    const WriterLock lock = must(parts->index.lock());
    const VersionRow row = version("a", 1);
    must(parts->index.commit(lock, [&](Txn& txn) { return set_note(txn, row, VersionNote::pinned, pinned); }));
  }
  StoreMirror mirror{*parts};
  StoreCache cache{*parts};
  StoreLedger ledger{*parts};
};

}  // namespace

TEST_CASE("a mirrored version gets its content by adoption") {
  Room room;
  room.mirror_version(record("a", 1, {{1}}), 1);
  CHECK(room.has_note(kIncomplete, room.version("a", 1).id));
  must(room.cache.adopt(std::vector<Adoption>{{"a", 1, manifest_of({{1}})}}));
  CHECK_FALSE(room.has_note(kIncomplete, room.version("a", 1).id));
  CHECK(room.mirror.join({"other", std::string(kHere)}).error().code == Errc::exists);
}

TEST_CASE("the cache evicts packs, except those of pinned versions, whatever was pinned when it was asked last") {
  Room room;
  room.mirror_version(record("a", 1, {{1}}), 1);
  room.mirror_version(record("b", 1, {{2}}), 2);
  must(room.cache.adopt(std::vector<Adoption>{{"a", 1, manifest_of({{1}})}, {"b", 1, manifest_of({{2}})}}));
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
  MirroredVersion own = record("a", 1, {{1}});
  own.version.publisher = kHere;
  room.mirror_version(own, 1);
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
