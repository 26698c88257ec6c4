// States that a daemon leaves if it dies between two steps, made by hand. Each of them is valid, and the next run
// repairs it.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "cluster_support.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "diskformat/uuid.h"
#include "os/sys.h"
#include "store_paths.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<std::string> fsck(Store& store) {
  return must(store.fsck({}, decode, no_progress())).problems;
}

void rebuild(TestCluster& test) {
  test.close();
  std::filesystem::remove(test.path + "/index/data.mdb");
  CHECK(must(Store::rebuild(test.path, decode, no_progress())).problems == std::vector<std::string>{});
  test.open();
}

std::uint64_t absent(Store& store) {
  return must(store.counts()).absent_blobs;
}

// Mirrors and adopts a@1 with the contents 1 and 2.
void know(ClusterStore& store) {
  mirror(store, {record("a", 1, {{1, 2}})}, 1);
  must(adopt(store, "a", 1, {{1, 2}}));
}

void set_cached(const std::string& store_path, PackId pack, bool cached) {
  PackToc toc = must(read_toc_of(store_path, pack));
  toc.cached = cached;
  must(replace_toc(toc_path(store_path, pack), toc));
}

}  // namespace

TEST_CASE("fetched blobs that were listed and never indexed are fetched again, or found by a rebuild") {
  TestCluster test;
  know(*test.store);
  fetch(*test.store, {1});
  auto fetching = must(test.store->cache().fetch_pack(1002));
  // Its .toc and .pack appear, but are not indexed.
  const PackId cut = fetching->id();
  write_file(pack_path(test.path, cut), as_text(content_bytes(2)));
  must(write_toc(toc_path(test.path, cut), PackToc{cut, 1002, {{content_id(2), 0, fetched(2, 0).chunks, 0}}, true}));
  fetching.reset();
  CHECK(absent(*test.store) == 1);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  CHECK(must(test.store->cache().cached_packs()).size() == 1);
  rebuild(test);
  CHECK(absent(*test.store) == 0);
  CHECK(must(test.store->cache().cached_packs()).size() == 2);
  CHECK(must(test.store->cache().evict({})).packs == 2);
  CHECK(absent(*test.store) == 2);
}

TEST_CASE("an eviction that was cut off leaves files that no rebuild minds and gc takes") {
  TestCluster test;
  know(*test.store);
  const PackId pack = fetch(*test.store, {1, 2});
  for (const std::string& path : {pack_path(test.path, pack), toc_path(test.path, pack)})
    std::filesystem::copy_file(path, path + ".saved");
  CHECK(must(test.store->cache().evict({})).packs == 1);
  for (const std::string& path : {pack_path(test.path, pack), toc_path(test.path, pack)})
    std::filesystem::rename(path + ".saved", path);
  CHECK(absent(*test.store) == 2);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  set_age(toc_path(test.path, pack), 3600);
  CHECK(must(test.store->gc({false, 1}, no_progress())).packs_deleted == 1);
  CHECK(must(list_directory(test.path + "/packs")).empty());
  CHECK(absent(*test.store) == 2);
}

TEST_CASE("a pack that a publish took for its own is never evicted, though the index did not hear of it") {
  TestCluster test;
  know(*test.store);
  const PackId pack = fetch(*test.store, {1, 2});
  set_cached(test.path, pack, false);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  CHECK(must(test.store->cache().evict({})).packs == 0);
  CHECK(must(test.store->cache().cached_packs()).empty());  // the index was corrected
  CHECK(absent(*test.store) == 0);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  set_cached(test.path, pack, true);
  const auto problems = fsck(*test.store);  // its .toc says `cached`, but it is never evicted: harmless, and reported
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].find("note cached") != std::string::npos);
}

TEST_CASE("a cached pack that is lost is absent after a rebuild, and fsck says so before") {
  TestCluster test;
  know(*test.store);
  const PackId pack = fetch(*test.store, {1, 2});
  must(remove_file(pack_path(test.path, pack)));
  must(remove_file(toc_path(test.path, pack)));
  CHECK(!fsck(*test.store).empty());
  rebuild(test);
  CHECK(absent(*test.store) == 2);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  fetch(*test.store, {1, 2});
  CHECK(absent(*test.store) == 0);
}

TEST_CASE("a pack of its own that is damaged before the mirror tells of it is named, and stops nothing") {
  TestCluster test;
  know(*test.store);
  auto prepared = must(prepare(*test.store, "b", {{3}}, {3}));
  MirroredVersion change = prepared->record();
  change.version.number = 1;
  write_file(toc_path(test.path, change.packs.at(0)), "damaged");
  const auto problems = mirror(*test.store, {change, record("c", 1, {{4}})}, 2);
  prepared->keep();
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].starts_with("b@1: "));
  CHECK(absent(*test.store) == 3);
  CHECK(must(must(test.store->snapshot())->models()).rows.size() == 3);
}

TEST_CASE("a manifest that was lost comes back by adoption") {
  TestCluster test;
  know(*test.store);
  fetch(*test.store, {1});
  const std::string before = dump(*test.store, false);
  test.close();
  for (const auto& file : std::filesystem::directory_iterator(test.path + "/manifests"))
    std::filesystem::remove(file.path());
  const auto problems = must(Store::rebuild(test.path, decode, no_progress())).problems;
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].starts_with("a@1: its content cannot be read"));
  test.open();
  CHECK(must(must(test.store->snapshot())->bare_versions(0, 9)).size() == 1);
  must(adopt(*test.store, "a", 1, {{1, 2}}));
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  rebuild(test);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}

TEST_CASE("a prepared publish is whole under its names, and only the journal logs what is said of it") {
  TestCluster test;
  const auto names = [&test](const std::string& folder) {
    std::set<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(test.path + "/" + folder))
      out.insert(entry.path().filename());
    return out;
  };
  const auto journal = names("journal"), packs = names("packs"), manifests = names("manifests");
  {
    const auto prepared = must(prepare(*test.store, "m", {{1, 2}}, {1, 2}));
    const MirroredVersion record = prepared->record();
    REQUIRE(record.packs.size() == 1);
    CHECK(names("journal") == journal);
    CHECK(names("packs") == std::set{pack_name(record.packs[0]) + ".pack", pack_name(record.packs[0]) + ".toc"});
    CHECK(must(test.store->open_manifest(record.version.manifest))->bytes().size() > 0);
    CHECK(must(read_toc_of(test.path, record.packs[0])).entries.size() == 2);
  }
  CHECK(names("packs") == packs);                            // no caller kept the publish
  CHECK(names("manifests").size() == manifests.size() + 1);  // another publish may need it: gc decides
  CHECK(names("tmp").empty());
}

TEST_CASE("uuids are read as they are written, and not otherwise") {
  const std::string uuid = random_uuid();
  CHECK(uuid_text(*parse_uuid(uuid)) == uuid);
  CHECK(uuid[14] == '4');
  CHECK(random_uuid() != uuid);
  for (const char* bad : {"", "x", "6fa459eaee8a4ca4894edb77e160355e", "6FA459EA-ee8a-4ca4-894e-db77e160355e",
                          "6fa459ea-ee8a-4ca4-894e-db77e160355e0", "6fa459ea-ee8a-4ca4-894e-db77e160355g",
                          "-6fa459eaee8a-4ca4-894e-db77e160355e"})
    CHECK(!parse_uuid(bad));
}
