#include "store/publishing/promotions.h"

#include <doctest/doctest.h>

#include "cluster_parts.h"

using namespace weft;
using namespace weft::testing;

namespace {

const Files kFiles = {{1, 2}, {3}};
using PackSet = std::set<PackId>;

// Another node has published a@1, with the contents 1, 2 and 3. The cached packs `first` and `second` hold 1 and 2.
struct Room : ClusterParts {
  Room() {
    deliver(record("a", 1, kFiles));
    adopt("a", 1, kFiles);
    first = fetch(1);
    second = fetch(2);
  }
  // Promotes as a publish does that relies on the packs `held`.
  Promotion promote_for(const PackSet& held, const PackSet& cached, const Digest& manifest = {}) const {
    Promotion promotion{held, cached, {}, manifest, 0};
    const WriterLock lock = must(parts->index.lock());
    promotion.number = parts->reliances.add(promotion);
    must(promote(*parts, lock, promotion));
    return promotion;
  }
  PackToc toc_of(PackId pack) const { return must(read_toc_of(parts->path, pack)); }
  // Checks that the notes of the index agree with the table of contents.
  bool is_cached(PackId pack) const {
    const PackToc toc = toc_of(pack);
    CHECK(toc.promoted != toc.cached);
    CHECK(has_note(kCached, pack) == toc.cached);
    CHECK(has_note(kPromoted, pack) == toc.promoted);
    return toc.cached;
  }
  void undo_unneeded(bool walk = false) const {
    for (const PackId pack : {first, second}) set_age(toc_path(made.path, pack), 3600);
    must(undo_unneeded_promotions(*parts, walk));
  }
  Result<Reliance> reliance(const std::vector<unsigned>& contents, bool holds = true) const {
    std::vector<ContentId> blobs;
    for (const unsigned content : contents) blobs.push_back(content_id(content));
    Txn txn = must(parts->index.read());
    return reliance_of(txn, blobs, [holds](PackId) { return holds; });
  }

  PackId first = 0, second = 0;
};

}  // namespace

TEST_CASE("content relies on the packs that hold it, or else on a live version") {
  Room room;
  const Reliance local = must(room.reliance({1, 3}));
  CHECK(local.held == PackSet{room.first});
  CHECK(local.cached == PackSet{room.first});
  CHECK(local.versions == std::vector<VersionName>{{"a", 1}});
  const Reliance remote = must(room.reliance({1, 2}, false));
  CHECK(remote.held.empty());
  CHECK(remote.versions == std::vector<VersionName>{{"a", 1}});
  CHECK(room.reliance({1, 9}).error().code == Errc::invalid);
  room.deliver(tombstone(record("a", 1, kFiles), 500));
  CHECK(room.reliance({3}).error().code == Errc::invalid);
}

TEST_CASE("a promotion makes cached packs owned ones, until its publish has failed") {
  Room room;
  const Promotion promotion = room.promote_for({room.first}, {room.first});
  CHECK_FALSE(room.is_cached(room.first));
  CHECK(room.is_cached(room.second));
  CHECK(must(room.reliance({1})).cached.empty());
  room.undo_unneeded();
  CHECK_FALSE(room.is_cached(room.first));  // the publish still relies on it
  undo_promotion(*room.parts, promotion);
  CHECK(room.is_cached(room.first));
  CHECK_FALSE(room.parts->reliances.is_needed(room.first));
}

TEST_CASE("a pack on which a later publish relies stays promoted, and gc decides about it") {
  Room room;
  const Promotion earlier = room.promote_for({room.first, room.second}, {room.first, room.second});
  const Promotion later = room.promote_for({room.first}, {});
  undo_promotion(*room.parts, earlier);
  CHECK_FALSE(room.is_cached(room.first));
  CHECK(room.is_cached(room.second));
  undo_promotion(*room.parts, later);
  CHECK_FALSE(room.is_cached(room.first));
  room.undo_unneeded();
  CHECK(room.is_cached(room.first));
}

TEST_CASE(
    "the packs of a publish that the registry may have accepted stay relied on, unless the index has its version") {
  Room room;
  const Digest known = record("a", 1, kFiles).version.manifest;
  const Digest unknown = record("b", 1, {{2}}).version.manifest;
  end_promotion(*room.parts, room.promote_for({room.first}, {room.first}, known));
  end_promotion(*room.parts, room.promote_for({room.second}, {room.second}, unknown));
  CHECK_FALSE(room.parts->reliances.is_needed(room.first));
  CHECK(room.parts->reliances.is_needed(room.second));
  CHECK(room.parts->reliances.is_needed(unknown));
  room.undo_unneeded();
  CHECK(room.is_cached(room.first));
  CHECK_FALSE(room.is_cached(room.second));
}

TEST_CASE("gc undoes promotions of dead publishes, except of packs that are young or that this node's versions need") {
  Room room;
  const MirroredVersion own = room.deliver_own("d", 1, {{2}});
  for (const PackId pack : {room.first, room.second}) room.parts->reliances.end(room.promote_for({pack}, {pack}), true);
  set_age(toc_path(room.made.path, room.first), 30);  // the registry may still accept the publish of an earlier daemon
  must(undo_unneeded_promotions(*room.parts, false));
  CHECK_FALSE(room.is_cached(room.first));
  room.undo_unneeded();
  CHECK(room.is_cached(room.first));
  CHECK_FALSE(room.is_cached(room.second));
  room.deliver(tombstone(own, 500));
  room.undo_unneeded();
  CHECK(room.is_cached(room.second));
}

TEST_CASE("a pack whose promotion the index has not noted is found by a walk of all packs") {
  Room room;
  PackToc toc = room.toc_of(room.first);
  toc.cached = false;
  toc.promoted = true;
  must(replace_toc(toc_path(room.made.path, room.first), toc));
  room.undo_unneeded();
  CHECK(room.toc_of(room.first).promoted);
  room.undo_unneeded(true);
  CHECK(room.is_cached(room.first));
  CHECK(room.is_cached(room.second));
}
