// Versions published into memory: what a stop of the machine loses, and how that is reported.
#include <doctest/doctest.h>

#include <fcntl.h>

#include <string>
#include <vector>

#include "cluster_support.h"
#include "diskformat/toc.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "packs/unsynced.h"
#include "store_paths.h"
#include "weft/store/fsck.h"

using namespace weft;
using namespace weft::testing;

namespace {

const std::string kOtherBoot = "00000000-0000-4000-8000-00000000b007";

Status no_pace() {
  return {};
}

PublishOutcome publish_in_memory(StoreImpl& store, std::string_view model, const std::vector<unsigned>& contents,
                                 Durability durability = Durability::memory) {
  auto import = must(store.begin_import(durability));
  TempDir dir;
  for (const unsigned content : contents) {
    write_file(dir / "source", as_text(content_bytes(content)));
    const Fd fd = must(open_file(dir / "source", O_RDONLY));
    const Range all{0, content_id(content).length};
    must(import->add(fd.get(), "source", std::span(&all, 1), no_progress()));
  }
  PublishRequest request;
  request.model = model;
  request.manifest = manifest_of({contents});
  request.content = make_content({contents});
  return must(import->publish(request));
}

PackId pack_of(Store& store, unsigned content) {
  return must(must(store.snapshot())->find_blob(content_id(content))).pack;
}

std::string boot_of(const std::string& path, PackId pack) {
  return must(read_toc(safe_file(toc_path(path, pack)))).boot;
}

// Acts as if the machine had stopped: gives the pack another boot id, and damages it if `torn`.
void stop_machine(const std::string& path, PackId pack, bool torn) {
  const SafePath toc_file = safe_file(toc_path(path, pack));
  PackToc toc = must(read_toc(toc_file));
  toc.boot = kOtherBoot;
  must(replace_toc(toc_file, toc));
  if (!torn) return;
  const Fd fd = must(open_file(pack_path(path, pack), O_RDWR));
  must(write_exact(fd.get(), 3, std::vector<std::byte>(4), "pack"));
}

std::vector<VersionId> in_memory(Store& store) {
  return must(must(store.snapshot())->in_memory(0, 100));
}

}  // namespace

TEST_CASE("a version in memory is served, and becomes an ordinary one") {
  TestStore test;
  {
    const auto store = open_store(test.path);
    const PublishOutcome made = publish_in_memory(*store, "m", {1, 2});
    CHECK(made.made);
    const PackId pack = pack_of(*store, 1);
    CHECK(boot_of(test.path, pack) == boot_id());
    CHECK(reads_well(*store, 1));
    CHECK(in_memory(*store) == std::vector{made.version.id});
    CHECK(must(must(store->snapshot())->durability(made.version)) == Durability::memory);
    CHECK(must(store->memory().unsynced_bytes(made.version.id)) >= content_id(1).length + content_id(2).length);
  }
  const auto rebuilt = Store::rebuild(test.path, decode, no_progress());
  REQUIRE(rebuilt.ok());
  CHECK(rebuilt->problems.empty());
  const auto store = open_store(test.path);
  REQUIRE(in_memory(*store).size() == 1);  // from the journal
  const VersionId version = in_memory(*store).front();
  CHECK(must(store->memory().flush_version(version, no_pace)) == MemoryState::kept);
  CHECK(boot_of(test.path, pack_of(*store, 1)).empty());
  CHECK(must(store->memory().unsynced_bytes(version)) == 0);
  CHECK(in_memory(*store).size() == 1);  // until keep_version()
  must(store->memory().keep_version("m", 1));
  CHECK(in_memory(*store).empty());
  CHECK(reads_well(*store, 2));
  must(store->memory().keep_version("m", 1));  // a repeated call succeeds
}

TEST_CASE("a pack that was in memory when the machine stopped is not read before it is verified") {
  TestStore test;
  PackId pack = 0;
  VersionRow version;
  {
    const auto before = open_store(test.path);
    version = publish_in_memory(*before, "m", {1, 2}).version;
    pack = pack_of(*before, 1);
  }
  SUBCASE("it is whole") {
    stop_machine(test.path, pack, false);
    const auto store = open_store(test.path);
    CHECK(store->open_blob(content_id(1)).error().code == Errc::absent);
    CHECK(must(store->memory().flush_version(version.id, no_pace)) == MemoryState::kept);
    CHECK(reads_well(*store, 1));
    CHECK(reads_well(*store, 2));
    CHECK(boot_of(test.path, pack).empty());
  }
  SUBCASE("it is not") {
    stop_machine(test.path, pack, true);
    const auto store = open_store(test.path);
    CHECK(store->open_blob(content_id(1)).error().code == Errc::absent);
    CHECK(must(store->memory().flush_version(version.id, no_pace)) == MemoryState::lost);
    CHECK(store->open_blob(content_id(1)).error().code == Errc::absent);
    CHECK(reads_well(*store, 2));  // undamaged content stays
    must(store->memory().lose_version("m", 1, "the machine stopped"));
    const VersionRow row = must(must(store->snapshot())->version(version.id));
    CHECK(row.removed);
    CHECK(row.lost == "the machine stopped");
    CHECK(in_memory(*store).empty());
    const std::vector<CatalogEvent> events = must(store->ledger().events(0)).events;  // events for an origin
    REQUIRE(std::holds_alternative<MirroredRemoval>(events.back()));
    CHECK(std::get<MirroredRemoval>(events.back()).lost == "the machine stopped");
    const StoreCounts counts = must(store->counts());
    CHECK(counts.lost == 1);
    CHECK(counts.newest_lost.lost == "the machine stopped");
    for (int looks = 0; looks < 2; ++looks) {
      const auto checked = store->fsck({}, decode, no_progress());
      REQUIRE(checked.ok());
      CHECK(checked->problems == std::vector<std::string>());
      must(store->gc({}, no_progress()));
    }
    const VersionRow again = publish_in_memory(*store, "m", {1, 2}).version;
    CHECK(again.number == 2);
    CHECK(reads_well(*store, 1));
  }
  SUBCASE("it is published again before the verification") {
    stop_machine(test.path, pack, true);
    const auto store = open_store(test.path);
    publish_in_memory(*store, "n", {1, 2}, Durability::local);
    CHECK(reads_well(*store, 1));
    CHECK(reads_well(*store, 2));
    CHECK(must(store->memory().flush_version(version.id, no_pace)) == MemoryState::kept);
    CHECK(reads_well(*store, 1));
  }
  SUBCASE("its pack is gone") {
    must(remove_file(safe_file(pack_path(test.path, pack))));
    stop_machine(test.path, pack, false);
    const auto store = open_store(test.path);
    CHECK(must(store->memory().flush_version(version.id, no_pace)) == MemoryState::lost);
    CHECK(must(store->snapshot())->find_blob(content_id(1)).error().code == Errc::absent);
  }
  SUBCASE("it is shorter") {
    stop_machine(test.path, pack, false);
    const Fd fd = must(open_file(pack_path(test.path, pack), O_RDWR));
    REQUIRE(::ftruncate(fd.get(), 0) == 0);
    const auto store = open_store(test.path);
    CHECK(store->open_blob(content_id(2)).error().code == Errc::absent);
    CHECK(must(store->memory().flush_version(version.id, no_pace)) == MemoryState::lost);
  }
}

TEST_CASE(
    "a pack is judged again if its process died after the index lost blobs and before the table of contents did") {
  TestStore test;
  PackId pack = 0;
  VersionRow version;
  std::vector<unsigned> contents = {1};
  bool shared = false;  // a version that stays has the content too
  SUBCASE("all is lost") {}
  SUBCASE("some is lost") {
    contents = {1, 2};
  }
  SUBCASE("some is lost, and another version has the rest") {
    contents = {1, 2};
    shared = true;
  }
  {
    const auto store = open_store(test.path);
    version = publish_in_memory(*store, "m", contents).version;
    pack = pack_of(*store, 1);
    if (shared) publish_in_memory(*store, "n", {2});
    stop_machine(test.path, pack, true);
    const SafePath toc_file = safe_file(toc_path(test.path, pack));
    const PackToc toc = must(read_toc(toc_file));
    must(store->gc({}, no_progress()));  // the next gc then looks only at the packs that are queued
    CHECK(must(store->memory().flush_version(version.id, no_pace)) == MemoryState::lost);
    must(replace_toc(toc_file, toc));
  }
  const auto store = open_store(test.path);
  must(flush_memory(*store, store->memory()));
  CHECK(in_memory(*store).empty());
  CHECK(must(must(store->snapshot())->version(version.id)).removed);
  must(store->gc({}, no_progress()));
  CHECK(stat_file(safe_file(pack_path(test.path, pack))).ok() == shared);
  CHECK(stat_file(safe_file(toc_path(test.path, pack))).ok() == shared);
  if (shared) CHECK(boot_of(test.path, pack).empty());
  if (shared) CHECK(reads_well(*store, 2));
  const auto checked = store->fsck({}, decode, no_progress());
  REQUIRE(checked.ok());
  CHECK(checked->problems == std::vector<std::string>());
}

TEST_CASE("a version that shares bytes with a version in memory is in memory too") {
  TestStore test;
  const auto store = open_store(test.path);
  const VersionId first = publish_in_memory(*store, "m", {1, 2}).version.id;
  const VersionId sharing = publish_in_memory(*store, "n", {2, 3}, Durability::local).version.id;
  const VersionId other = publish_in_memory(*store, "o", {4}, Durability::local).version.id;
  CHECK(in_memory(*store) == std::vector{first, sharing});
  CHECK(must(store->memory().flush_version(sharing, no_pace)) ==
        MemoryState::kept);  // its shared packs are synced as well
  CHECK(boot_of(test.path, pack_of(*store, 1)).empty());
  must(store->memory().keep_version("n", 1));
  CHECK(in_memory(*store) == std::vector{first});
  CHECK(must(must(store->snapshot())->durability(must(must(store->snapshot())->version(other)))) == Durability::local);
}

TEST_CASE("a version that uses dead blobs in memory is in memory too") {
  TestStore test;
  const auto store = open_store(test.path);
  publish_in_memory(*store, "m", {1});
  must(store->remove_version("m", 1));
  CHECK(in_memory(*store).empty());
  const VersionId again = publish_in_memory(*store, "n", {1}, Durability::local).version.id;
  CHECK(in_memory(*store) == std::vector{again});
  CHECK(must(store->memory().flush_version(again, no_pace)) == MemoryState::kept);
  CHECK(boot_of(test.path, pack_of(*store, 1)).empty());
}

TEST_CASE("gc leaves packs that are only in memory as they are") {
  TestStore test;
  const auto store = open_store(test.path);
  publish_in_memory(*store, "m", {1, 2});
  publish_in_memory(*store, "n", {2});
  const PackId pack = pack_of(*store, 2);
  must(store->remove_version("m", 1));
  GcOptions all;
  all.all = true;
  must(store->gc(all, no_progress()));
  CHECK(pack_of(*store, 2) == pack);
  CHECK(boot_of(test.path, pack) == boot_id());
  CHECK(reads_well(*store, 2));
  must(store->memory().flush_version(in_memory(*store).front(), no_pace));
  must(store->gc(all, no_progress()));
  CHECK(pack_of(*store, 2) != pack);
  CHECK(reads_well(*store, 2));
}

TEST_CASE("a pace that fails ends the work, which begins again") {
  TestStore test;
  const auto store = open_store(test.path);
  const VersionId version = publish_in_memory(*store, "m", {1}).version.id;
  const auto stop = []() -> Status { return Error{Errc::cancelled, "not now"}; };
  CHECK(store->memory().flush_version(version, stop).error().code == Errc::cancelled);
  CHECK(boot_of(test.path, pack_of(*store, 1)) == boot_id());
  CHECK(must(store->memory().flush_version(version, no_pace)) == MemoryState::kept);
}

TEST_CASE("in a cluster a version waits for those of other nodes that it is made of") {
  TestCluster test;
  mirror(*test.store, {record("base", 1, {{1, 2}}), MirroredMemory{"base", 1, true}}, 2);
  must(adopt(*test.store, "base", 1, {{1, 2}}));
  MirroredVersion child;
  {
    const auto prepared = must(prepare(*test.store, "child", {{1, 3}}, {3}));
    CHECK(prepared->record().in_memory);  // its own bytes are on disk
    child = prepared->record();
    child.version.number = 1;
    child.version.publisher = kHere;
    prepared->keep();
  }
  mirror(*test.store, {child, MirroredMemory{"child", 1, true}}, 3);
  const VersionId id = in_memory(*test.store).back();
  CHECK(must(test.store->memory().flush_version(id, no_pace)) == MemoryState::waits);
  SUBCASE("they are kept") {
    mirror(*test.store, {MirroredMemory{"base", 1, false}}, 4);
    CHECK(must(test.store->memory().flush_version(id, no_pace)) == MemoryState::kept);
  }
  SUBCASE("they are lost") {
    MirroredVersion lost = tombstone(record("base", 1, {{1, 2}}), 5);
    lost.version.lost = "lost: its machine stopped";
    mirror(*test.store, {lost}, 4);
    CHECK(must(test.store->memory().flush_version(id, no_pace)) == MemoryState::lost);
    const auto snapshot = must(test.store->snapshot());
    CHECK(must(snapshot->version(must(snapshot->model("base")).id, 1)).lost == lost.version.lost);
  }
}
