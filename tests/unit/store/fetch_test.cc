#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

#include <fmt/core.h>

#include "cluster_support.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "os/entries.h"
#include "os/sys.h"
#include "store_paths.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<std::string> fsck(Store& store) {
  return must(store.fsck({}, decode, no_progress())).problems;
}

Result<BlobPlace> place_of(Store& store, unsigned content) {
  return store.snapshot().value()->find_blob(content_id(content));
}

// Mirrors and adopts a@1 and b@1. None of their contents is local.
void know_two(ClusterStore& store) {
  mirror(store, {record("a", 1, {{1, 2}, {3}}), record("b", 1, {{3, 4}})}, 1);
  must(adopt(store, "a", 1, {{1, 2}, {3}}));
  must(adopt(store, "b", 1, {{3, 4}}));
}

// Returns the registry's record of this node's version `number`.
MirroredVersion own(const PreparedPublish& prepared, std::uint64_t number) {
  MirroredVersion change = prepared.record();
  change.version.number = number;
  return change;
}

}  // namespace

TEST_CASE("blobs that are fetched are found, in batches, beside readers of what came before") {
  TestCluster test;
  know_two(*test.store);
  auto pack = must(test.store->cache().fetch_pack(4100));
  CHECK(pack->size() == 4100);
  write_content(*pack, 1, 0);
  CHECK(must(pack->add(std::vector{fetched(1, 0)})) == 1);
  auto reader = must(test.store->open_blob(content_id(1)));
  CHECK(reader.pack->id() == pack->id());
  CHECK(test.store->open_blob(content_id(2)).error().code == Errc::absent);
  write_content(*pack, 3, 2003);
  write_content(*pack, 2, 1001);
  CHECK(must(pack->add(std::vector{fetched(3, 2003), fetched(2, 1001)})) == 2);
  for (unsigned content : {1U, 2U, 3U}) CHECK(reads_well(*test.store, content));
  // One is indexed already. No version needs the other.
  CHECK(must(pack->add(std::vector{fetched(2, 1001), fetched(9, 3006)})) == 0);
  const PackId id = pack->id();
  pack.reset();
  CHECK(must(test.store->counts()).absent_blobs == 1);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  // The next run of the daemon resumes the pack.
  test.close();
  test.open();
  pack = must(test.store->cache().resume_fetch(id));
  CHECK(pack->size() == 4100);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}

TEST_CASE("a file becomes a cached pack, and goes from its place") {
  TestCluster test;
  know_two(*test.store);
  const SafePath file = test.store->directory() / "copied";
  CHECK(test.store->cache().take_file(file).error().code == Errc::not_found);
  {
    const Fd made = must(open_file(file, O_RDWR | O_CREAT, 0600));
    must(resize_file(made.get(), 2003, "copied"));
  }
  auto pack = must(test.store->cache().take_file(file));
  CHECK(stat_file(file).error().code == Errc::not_found);
  CHECK(pack->size() == 2003);
  write_content(*pack, 2, 1001);
  CHECK(must(pack->add(std::vector{fetched(2, 1001)})) == 1);
  CHECK(reads_well(*test.store, 2));
  const SafePath placed = pack_path(test.store->directory(), pack->id());
  CHECK((must(stat_file(placed)).st_mode & 07777U) == 0644);
  pack.reset();
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  must(make_directory(file));
  CHECK(test.store->cache().take_file(file).error().code == Errc::not_found);
}

TEST_CASE("the least recently used packs are evicted first; pinned packs and packs being filled stay") {
  TestCluster test;
  know_two(*test.store);
  mirror(*test.store, {record("c", 1, {{5}})}, 2);
  must(adopt(*test.store, "c", 1, {{5}}));
  const PackId first = fetch(*test.store, {1, 2});
  const PackId second = fetch(*test.store, {3});
  const PackId third = fetch(*test.store, {4});
  const PackId fourth = fetch(*test.store, {5});
  set_age(pack_path(test.path, second), 400);
  set_age(pack_path(test.path, third), 300);
  set_age(pack_path(test.path, fourth), 200);
  set_age(pack_path(test.path, first), 100);
  std::vector<PackId> order;
  for (const CachedPack& pack : must(test.store->cache().cached_packs())) order.push_back(pack.id);
  CHECK(order == std::vector{second, third, fourth, first});
  must(test.store->pin("c", 1, true));
  auto filler = must(test.store->cache().resume_fetch(second));
  const OpenPlace reader = must(test.store->open_blob(content_id(3)));  // the pack has just been used
  CHECK(must(test.store->cache().cached_packs()).front().id == third);
  const std::uint64_t one = must(test.store->cache().cached_packs()).front().disk_bytes;
  EvictReport dry = must(test.store->cache().evict({3 * one, {}, true}));
  CHECK(dry.packs == 1);
  CHECK(must(test.store->cache().cached_packs()).size() == 4);
  EvictReport report = must(test.store->cache().evict({3 * one, {}, false}));
  CHECK(report.packs == 1);
  CHECK(report.disk_bytes == one);
  CHECK(place_of(*test.store, 4).error().code == Errc::absent);
  report = must(test.store->cache().evict({}));
  CHECK(report.packs == 1);
  CHECK(report.pinned_bytes == one);
  CHECK(report.busy_bytes == one);
  CHECK(report.kept_bytes == 2 * one);
  CHECK(place_of(*test.store, 1).error().code == Errc::absent);
  CHECK(place_of(*test.store, 3).ok());
  CHECK(place_of(*test.store, 5).ok());
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  filler.reset();
  VersionId b = test.store->snapshot().value()->version(2, 1).value().id;
  CHECK(must(test.store->cache().evict({0, b, false})).packs == 1);
  CHECK(place_of(*test.store, 3).error().code == Errc::absent);
  std::vector<std::byte> bytes(content_id(3).length);  // a reader with an open pack keeps its bytes
  must(read_exact(reader.pack->fd(), reader.offset, bytes, "pack"));
  CHECK(bytes == content_bytes(3));
  must(test.store->pin("c", 1, false));
  CHECK(must(test.store->cache().evict({0, b, false})).packs == 0);
  CHECK(must(test.store->cache().evict({})).packs == 1);
  CHECK(must(list_directory(test.path + "/packs")).empty());
  CHECK(must(test.store->counts()).absent_blobs == 5);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}

TEST_CASE("a publish owns its new packs and the cached packs that it inherits from") {
  TestCluster test;
  know_two(*test.store);
  const PackId cached = fetch(*test.store, {1, 2});
  fetch(*test.store, {3});
  auto prepared = must(prepare(*test.store, "d", {{1, 7}, {4}}, {7}));
  CHECK(prepared->new_bytes() == 1007);
  CHECK(prepared->record().packs.size() == 1);
  CHECK(prepared->record().version.publisher == kHere);
  REQUIRE(prepared->relies_on().size() == 1);  // content 4 is not local
  CHECK(prepared->relies_on()[0] == std::pair<std::string, std::uint64_t>{"b", 1});
  CHECK(must(test.store->cache().cached_packs()).size() == 1);
  CHECK(must(read_toc_of(test.path, cached)).cached == false);
  prepared->keep();
  mirror(*test.store, {own(*prepared, 1)}, 2);
  prepared.reset();
  VersionRow row = test.store->snapshot().value()->version(3, 1).value();
  CHECK(row.message == "made by a test");
  CHECK(!must(test.store->snapshot().value()->is_bare(row.id)));
  CHECK(must(test.store->snapshot().value()->unsaved(0, 9)) == std::vector<VersionId>{row.id});
  CHECK(must(test.store->cache().evict({})).packs == 1);
  for (unsigned content : {1U, 2U, 7U}) CHECK(reads_well(*test.store, content));
  CHECK(place_of(*test.store, 3).error().code == Errc::absent);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  std::string before = dump(*test.store, false);
  test.close();
  CHECK(must(Store::rebuild(test.path, decode, no_progress())).problems == std::vector<std::string>{});
  test.open();
  CHECK(dump(*test.store, false) == before);
}

TEST_CASE("an abandoned publish makes its packs cached again, except those that another publish needs") {
  TestCluster test;
  know_two(*test.store);
  const PackId one = fetch(*test.store, {1, 2});
  const PackId two = fetch(*test.store, {3, 4});
  auto first = must(prepare(*test.store, "d", {{1, 3, 7}}, {7}));
  CHECK(must(test.store->cache().cached_packs()).empty());
  auto second = must(prepare(*test.store, "e", {{3, 8}}, {8}));
  first.reset();
  REQUIRE(must(test.store->cache().cached_packs()).size() == 1);
  CHECK(must(test.store->cache().cached_packs())[0].id == one);
  CHECK(must(read_toc_of(test.path, one)).cached);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  second->keep();
  mirror(*test.store, {own(*second, 1)}, 2);
  second.reset();
  CHECK(must(test.store->cache().evict({})).packs == 1);
  CHECK(place_of(*test.store, 1).error().code == Errc::absent);
  CHECK(reads_well(*test.store, 3));
  CHECK(!must(read_toc_of(test.path, two)).cached);
}

TEST_CASE("gc gives back what a publish that died has promoted, when no version of this node needs it") {
  TestCluster test;
  know_two(*test.store);
  const PackId lost = fetch(*test.store, {1, 2});
  const PackId used = fetch(*test.store, {3});
  auto dies = must(prepare(*test.store, "d", {{1, 7}}, {7}));
  dies->keep();  // as if no process had undone it
  dies.reset();
  auto lives = must(prepare(*test.store, "e", {{3, 8}}, {8}));
  lives->keep();
  const MirroredVersion mine = own(*lives, 1);
  mirror(*test.store, {mine}, 2);
  lives.reset();
  for (const PackId pack : {lost, used}) set_age(toc_path(test.path, pack), 3600);
  must(test.store->gc({false, 2}, no_progress()));
  CHECK(must(test.store->cache().cached_packs()).empty());  // the registry may still accept this process's publish
  test.close();
  test.open();
  must(test.store->gc({true, 2}, no_progress()));
  CHECK(must(test.store->cache().cached_packs()).empty());
  must(test.store->gc({false, 2}, no_progress()));
  REQUIRE(must(test.store->cache().cached_packs()).size() == 1);
  CHECK(must(test.store->cache().cached_packs())[0].id == lost);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  mirror(*test.store, {tombstone(mine, 1)}, 3);
  must(test.store->gc({false, 3}, no_progress()));
  CHECK(must(test.store->cache().cached_packs()).size() == 2);
  CHECK(must(test.store->cache().evict({})).packs == 2);
  CHECK(place_of(*test.store, 3).error().code == Errc::absent);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}

TEST_CASE("an import stores what is not here, though a version has it") {
  TestCluster test;
  know_two(*test.store);
  auto prepared = must(prepare(*test.store, "d", {{3, 4}}, {3, 4}));
  CHECK(prepared->new_bytes() == 2007);
  CHECK(prepared->relies_on().empty());
  CHECK(place_of(*test.store, 3).error().code == Errc::absent);
  prepared->keep();
  mirror(*test.store, {own(*prepared, 1)}, 2);
  CHECK(reads_well(*test.store, 3));
  CHECK(must(test.store->cache().cached_packs()).empty());
  CHECK(test.store->snapshot().value()->owner(content_id(3)).value()->first == 1);  // a@1 is the first holder
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  CHECK(prepare(*test.store, "d", {{99}}, {}).error().code == Errc::invalid);
}

TEST_CASE("an abandoned publish leaves nothing; one with an unknown outcome stays for the mirror") {
  TestCluster test;
  know_two(*test.store);
  must(prepare(*test.store, "d", {{7}}, {7})).reset();
  CHECK(must(list_directory(test.path + "/packs")).empty());
  CHECK(must(list_directory(test.path + "/manifests")).size() == 3);  // another publish may need it
  CHECK(must(test.store->gc({false, 1}, no_progress())).stale_temporaries == 1);
  CHECK(must(list_directory(test.path + "/manifests")).size() == 2);
  MirroredVersion taken;
  {
    auto prepared = must(prepare(*test.store, "d", {{7}}, {7}));
    taken = own(*prepared, 1);
    prepared->keep();
  }
  test.close();
  test.open();  // the daemon died, but its request may still reach the registry: gc keeps the pack for a while
  CHECK(must(test.store->gc({false, 1}, no_progress())).packs_deleted == 0);
  CHECK(must(list_directory(test.path + "/packs")).size() == 2);
  CHECK(must(list_directory(test.path + "/manifests")).size() == 3);
  mirror(*test.store, {taken}, 2);
  CHECK(reads_well(*test.store, 7));
  CHECK(fsck(*test.store) == std::vector<std::string>{});

  auto lost = must(prepare(*test.store, "d", {{8}}, {8}));
  lost->keep();
  const PackId pack = lost->record().packs.at(0);
  set_age(toc_path(test.path, pack), 3600);
  set_age(test.path + "/manifests/" + to_hex(lost->record().version.manifest), 3600);
  CHECK(must(test.store->gc({false, 2}, no_progress())).busy_packs == 1);  // it is being prepared
  lost.reset();
  CHECK(must(test.store->gc({false, 2}, no_progress())).busy_packs == 1);  // the registry may still take it
  test.close();
  test.open();
  GcReport report = must(test.store->gc({false, 2}, no_progress()));
  CHECK(report.packs_deleted == 1);
  CHECK(report.stale_temporaries == 1);
  CHECK(reads_well(*test.store, 7));
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}

TEST_CASE("an abandoned publish keeps a manifest that another publish shares") {
  TestCluster test;
  know_two(*test.store);
  auto first = must(prepare(*test.store, "d", {{7}}, {7}));
  auto second = must(prepare(*test.store, "d", {{7}}, {7}));
  const Digest manifest = first->record().version.manifest;
  REQUIRE(second->record().version.manifest == manifest);
  second.reset();
  CHECK(test.store->open_manifest(manifest).ok());
  must(test.store->gc({false, 1}, no_progress()));
  CHECK(test.store->open_manifest(manifest).ok());
  first->keep();
  mirror(*test.store, {own(*first, 1)}, 2);
  first.reset();
  CHECK(reads_well(*test.store, 7));
  CHECK(!must(test.store->snapshot().value()->is_bare(3)));
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}

TEST_CASE("a blob that a fetch adds while gc looks at its pack is kept") {
  TestCluster test;
  know_two(*test.store);
  auto pack = must(test.store->cache().fetch_pack(4100));
  write_content(*pack, 1, 0);
  CHECK(must(pack->add(std::vector{fetched(1, 0)})) == 1);
  mirror(*test.store, {tombstone(record("a", 1, {{1, 2}, {3}}), 1)}, 2);  // content 1 is dead, content 3 is live
  must(test.store->gc({false, 2}, no_progress()));
  write_content(*pack, 3, 2003);
  CHECK(must(pack->add(std::vector{fetched(3, 2003)})) == 1);
  must(test.store->gc({false, 2}, no_progress()));
  pack.reset();
  must(test.store->gc({false, 2}, no_progress()));
  CHECK(reads_well(*test.store, 3));
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}

TEST_CASE("gc judges only what it knows all of") {
  TestCluster test;
  know_two(*test.store);
  auto prepared = must(prepare(*test.store, "d", {{1, 2}}, {1, 2}));
  prepared->keep();
  const MirroredVersion mine = own(*prepared, 1);
  mirror(*test.store, {mine}, 5);
  prepared.reset();
  mirror(*test.store, {record("e", 1, {{1}}), tombstone(record("a", 1, {{1, 2}, {3}}), 1), tombstone(mine, 1)}, 7);
  CHECK(test.store->gc({}, no_progress()).error().code == Errc::busy);
  CHECK(test.store->gc({false, 8}, no_progress()).error().code == Errc::busy);
  auto bare = test.store->gc({false, 7}, no_progress());
  REQUIRE(bare.error().code == Errc::busy);
  CHECK(bare.error().message.find("e@1") != std::string::npos);
  must(adopt(*test.store, "e", 1, {{1}}));
  GcReport report = must(test.store->gc({false, 7}, no_progress()));
  CHECK(report.blobs_freed == 1);
  CHECK(reads_well(*test.store, 1));
  CHECK(place_of(*test.store, 2).error().code == Errc::not_found);
  // A version that arrives while gc runs stops it, too.
  mirror(*test.store, {tombstone(record("e", 1, {{1}}), 1), record("f", 1, {{1}, {6}})}, 8);
  CHECK(test.store->parts().blobs.write().error().code == Errc::busy);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}

TEST_CASE("a deleted index knows again what is cached, absent and pinned") {
  TestCluster test;
  know_two(*test.store);
  fetch(*test.store, {1, 2});
  fetch(*test.store, {4});
  must(test.store->pin("b", 1, true));
  must(test.store->cache().evict({1, {}, false}));
  CHECK(must(test.store->cache().cached_packs()).size() == 1);
  std::string before = dump(*test.store, false);
  test.close();
  std::filesystem::remove_all(test.path + "/index");
  CHECK(must(Store::rebuild(test.path, decode, no_progress())).problems == std::vector<std::string>{});
  test.open();
  CHECK(dump(*test.store, false) == before);
  REQUIRE(must(test.store->cache().cached_packs()).size() == 1);
  CHECK(must(test.store->cache().cached_packs())[0].pinned);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}

TEST_CASE("a rebuild takes from assembled files only what this node must have") {
  TestCluster test;
  mirror(*test.store, {record("m", 1, {{1, 2}})}, 7);
  must(adopt(*test.store, "m", 1, {{1, 2}}));
  fetch(*test.store, {1});
  test.close();
  assemble(test.path, {1, 2}, 0x1234);
  const auto packs = must(list_directory(test.path + "/packs"));
  CHECK(must(Store::rebuild(test.path, decode, no_progress())).repaired == std::vector<std::string>{});
  CHECK(must(list_directory(test.path + "/packs")) == packs);
  test.open();
  CHECK(reads_well(*test.store, 1));
  CHECK(test.store->open_blob(content_id(2)).error().code == Errc::absent);
}

TEST_CASE("gc rewrites a cached pack with dead blobs into a cached pack") {
  TestCluster test;
  know_two(*test.store);
  const PackId old = fetch(*test.store, {1, 2, 3});
  const auto reader = must(test.store->open_blob(content_id(1)));
  set_age(pack_path(test.path, old), 100);
  fetch(*test.store, {4});
  const CachedPack before = must(test.store->cache().cached_packs()).front();
  REQUIRE(before.id == old);
  mirror(*test.store, {tombstone(record("a", 1, {{1, 2}, {3}}), 1)}, 2);
  CHECK(must(test.store->gc({false, 2}, no_progress())).packs_compacted == 1);
  const std::vector<CachedPack> packs = must(test.store->cache().cached_packs());
  REQUIRE(packs.size() == 2);
  CHECK(packs.front().id != old);
  CHECK(packs.front().used_ns == before.used_ns);
  CHECK(must(read_toc_of(test.path, packs.front().id)).cached);
  CHECK(must(read_toc_of(test.path, packs.front().id)).entries.size() == 1);
  CHECK_FALSE(stat_file(pack_path(safe(test.path), old)).ok());
  CHECK(reads_well(*test.store, 3));
  CHECK(reads_well(*test.store, 4));
  CHECK(test.store->open_blob(content_id(1)).error().code == Errc::not_found);
  std::vector<std::byte> bytes(content_id(1).length);
  must(read_exact(reader.pack->fd(), reader.offset, bytes, "pack"));  // an open pack keeps its bytes
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  CHECK(must(test.store->cache().evict({})).packs == 2);
  CHECK(test.store->open_blob(content_id(3)).error().code == Errc::absent);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}

TEST_CASE("gc makes room in cached packs, and takes no cached pack for its own") {
  TestCluster test;
  std::vector<MirrorChange> changes;
  for (unsigned n = 20; n < 40; ++n) changes.emplace_back(record(fmt::format("m{}", n), 1, {{n}}));
  mirror(*test.store, changes, 1);
  for (unsigned n = 20; n < 40; ++n) {
    must(adopt(*test.store, fmt::format("m{}", n), 1, {{n}}));
    fetch(*test.store, {n});
  }
  CHECK(must(test.store->gc({false, 1}, no_progress())).packs_compacted == 0);
  CHECK(must(test.store->cache().cached_packs()).size() == 20);
  mirror(*test.store, {tombstone(record("m20", 1, {{20}}), 1)}, 2);
  CHECK(must(test.store->gc({false, 2}, no_progress())).packs_deleted == 1);
  CHECK(must(test.store->cache().cached_packs()).size() == 19);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}
