#include "store/cluster/fetch_pack.h"

#include <doctest/doctest.h>

#include "cluster_parts.h"
#include "index/blobs.h"
#include "store/publishing/promotions.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Blobs = std::vector<FetchedBlob>;

// Another node has published a@1, with the contents 1, 2 and 3. No local pack holds any of them.
struct Room : ClusterParts {
  Room() {
    deliver(record("a", 1, {{1, 2}, {3}}));
    adopt("a", 1, {{1, 2}, {3}});
  }
  std::unique_ptr<FetchPack> create(std::uint64_t size) const { return must(CachedPackWriter::create(*parts, size)); }
  Result<std::unique_ptr<FetchPack>> resume(PackId pack) const { return CachedPackWriter::resume(*parts, pack); }
  std::vector<std::string> files(const std::string& folder) const {
    return must(list_directory(made.path + "/" + folder));
  }
  std::optional<BlobPlace> place_of(unsigned content) const {
    return must(must(parts->blobs.read())->find(content_id(content)));
  }
  std::vector<std::uint64_t> listed(PackId pack) const {  // offsets
    std::vector<std::uint64_t> offsets;
    for (const PackEntry& entry : must(read_toc_of(parts->path, pack)).entries) offsets.push_back(entry.offset);
    return offsets;
  }
};

}  // namespace

TEST_CASE("a fetched pack lies below tmp/ until its first blobs are added, and leaves no file without any") {
  Room room;
  auto pack = room.create(4100);
  CHECK(pack->size() == 4100);
  CHECK(must(pack->add({})) == 0);
  CHECK(must(pack->add(Blobs{fetched(9, 0)})) == 0);  // no version needs it
  CHECK(room.files("packs").empty());
  CHECK(room.files("tmp").size() == 1);
  pack.reset();
  CHECK(room.files("packs").empty());
  CHECK(room.files("tmp").empty());
}

TEST_CASE(
    "each batch of fetched blobs is listed and gets its places; blobs that are local or not needed do not count") {
  Room room;
  auto pack = room.create(6000);
  const PackId id = pack->id();
  write_content(*pack, 1, 0);
  CHECK(must(pack->add(Blobs{fetched(1, 0)})) == 1);
  CHECK(room.files("packs").size() == 2);
  CHECK(room.files("tmp").empty());
  CHECK(room.has_note(kCached, id));
  CHECK_FALSE(room.finds(2));
  write_content(*pack, 3, 2003);
  write_content(*pack, 2, 1001);
  CHECK(must(pack->add(Blobs{fetched(3, 2003), fetched(2, 1001)})) == 2);
  CHECK(room.place_of(2) == BlobPlace{id, 1001});
  CHECK(room.place_of(3) == BlobPlace{id, 2003});
  CHECK(room.listed(id) == std::vector<std::uint64_t>{0, 1001, 2003});
  CHECK(must(pack->add(Blobs{fetched(2, 3006), fetched(9, 4100)})) == 0);
  CHECK(room.listed(id).size() == 3);
  CHECK(room.place_of(2) == BlobPlace{id, 1001});

  room.deliver(record("b", 1, {{4}}));
  room.adopt("b", 1, {{4}});
  write_content(*pack, 4, 3006);
  CHECK(must(pack->add(Blobs{fetched(4, 3006), fetched(4, 4100)})) == 1);  // content that comes twice counts once
  CHECK(room.place_of(4) == BlobPlace{id, 3006});
  pack.reset();
  CHECK(room.files("packs").size() == 2);
  CHECK(must(read_toc_of(room.parts->path, id)).cached);
}

TEST_CASE("a batch with an impossible blob is refused whole, and leaves the pack as it was") {
  Room room;
  const auto pack = room.create(4100);
  write_content(*pack, 1, 0);
  CHECK(must(pack->add(Blobs{fetched(1, 0)})) == 1);
  FetchedBlob forged = fetched(3, 2003);
  forged.chunks[0].bytes[0] ^= 1U;
  const FetchedBlob overlapping = fetched(3, 1000), outside = fetched(3, 4000), empty{};
  for (const FetchedBlob& impossible : {forged, overlapping, outside, empty}) {
    CAPTURE(impossible.offset);
    CHECK(pack->add(Blobs{fetched(2, 1001), impossible}).error().code == Errc::invalid);
    CHECK(room.listed(pack->id()).size() == 1);
    CHECK_FALSE(room.finds(2));
    CHECK_FALSE(room.finds(3));
  }
  write_content(*pack, 2, 1001);
  CHECK(must(pack->add(Blobs{fetched(2, 1001)})) == 1);
}

TEST_CASE("a cached pack is resumed by one writer at a time, and not after it has lost blobs") {
  Room room;
  const PackId id = room.fetch(1);
  CHECK(room.resume(id + 1).error().code == Errc::not_found);
  auto filler = must(room.resume(id));
  CHECK(filler->size() == content_id(1).length);
  CHECK(room.resume(id).error().code == Errc::busy);
  filler.reset();
  {
    const WriterLock lock = must(room.parts->index.lock());
    must(room.parts->index.write(lock, [](Txn& txn) -> Status {
      WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(txn, content_id(1)));
      return forget_place(txn, *blob);
    }));
  }
  CHECK(room.resume(id).error().code == Errc::invalid);
  CHECK(room.listed(id).size() == 1);
}

TEST_CASE("a pack that a publish has promoted gets the blobs of its fetch, and is not resumed") {
  Room room;
  auto pack = room.create(4100);
  const PackId id = pack->id();
  write_content(*pack, 1, 0);
  CHECK(must(pack->add(Blobs{fetched(1, 0)})) == 1);
  {
    const WriterLock lock = must(room.parts->index.lock());
    must(promote(*room.parts, lock, {{id}, {id}, {}, {}, 0}));
  }
  write_content(*pack, 2, 1001);
  CHECK(must(pack->add(Blobs{fetched(2, 1001)})) == 1);
  const PackToc toc = must(read_toc_of(room.parts->path, id));
  CHECK(toc.promoted);
  CHECK_FALSE(toc.cached);
  CHECK(toc.entries.size() == 2);
  CHECK_FALSE(room.has_note(kCached, id));
  pack.reset();
  CHECK(room.resume(id).error().code == Errc::invalid);
}
