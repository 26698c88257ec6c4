#include <doctest/doctest.h>

#include <filesystem>

#include <fmt/core.h>

#include "base/sha256.h"
#include "index_support.h"
#include "os/sys.h"

using namespace weft;
using namespace weft::testing;

namespace {

// A history with all kinds of records: namespaces, parents, moved tags, removals of the first, a middle and the last
// holder.
void live(StoreImpl& store) {
  must_publish(store, "org/a", {{1, 2}, {3}}, {{}, {"first"}});
  must_publish(store, "org/a", {{1, 4}, {3}}, {{{"org/a", 1, false, 2, 300}}, {}, {"meta/else", "other one"}});
  must_publish(store, "b", {{2, 5}, {6}}, {{{"org/a", 2}}, {"x", "y"}});
  must_publish(store, "b", {{5, 7}});
  must_publish(store, "deep/er/c", {{8}});
  REQUIRE(store.set_tag("org/a", "first", 2, {"alice", ""}).ok());
  REQUIRE(store.set_tag("b", "y", {}).ok());
  REQUIRE(store.set_tag("b", "z", 2).ok());
  REQUIRE(store.remove_version("org/a", 1).ok());
  REQUIRE(store.remove_version("deep/er/c", 1).ok());
  REQUIRE(store.remove_version("b", 2).ok());
  must_publish(store, "b", {{9}, {1, 9}});
}

std::string rebuilt(const std::string& path) {
  FsckReport report = Store::rebuild(path, decode, no_progress()).value();
  CHECK(report.rebuilt);
  CHECK(report.problems == std::vector<std::string>{});
  return dump(*Store::open(path, {}).value(), false);
}

std::vector<std::string> fsck(StoreImpl& store) {
  return store.fsck({}, decode, no_progress()).value().problems;
}

}  // namespace

TEST_CASE("a deleted index comes back with everything, and nothing that was removed") {
  for (bool collected : {false, true}) {
    CAPTURE(collected);
    TestStore test;
    auto store = open_store(test.path);
    live(*store);
    if (collected) {
      CHECK(store->gc({}, no_progress()).value().versions_reaped == 3);
      must_publish(*store, "deep/er/c", {{8}});  // a name that existed before gets new inodes
    }
    std::string before = dump(*store, false);
    std::uint64_t sequence = store->snapshot().value()->sequence();
    store.reset();
    std::filesystem::remove_all(test.path + "/index");
    CHECK(rebuilt(test.path) == before);
    CHECK(rebuilt(test.path) == before);  // a second rebuild gives the same
    store = open_store(test.path);
    CHECK(store->snapshot().value()->sequence() > sequence);
    CHECK(fsck(*store) == std::vector<std::string>{});
  }
}

TEST_CASE("numbers continue after a rebuild without reuse") {
  TestStore test;
  auto store = open_store(test.path);
  live(*store);
  VersionId last = must_publish(*store, "m", {{11}}).version.id;
  Ino ino = store->snapshot().value()->local(last).value().ino_base;
  REQUIRE(store->remove_version("m", 1).ok());
  REQUIRE(store->gc({}, no_progress()).ok());
  store.reset();
  rebuilt(test.path);
  store = open_store(test.path);
  VersionRow next = must_publish(*store, "m", {{11}}).version;
  CHECK(next.number == 2);
  CHECK(next.id > last);
  CHECK(store->snapshot().value()->local(next.id).value().ino_base > ino);
}

TEST_CASE("an open store continues with a rebuilt index") {
  TestStore test;
  auto reader = Store::open(test.path, {}).value();
  auto store = open_store(test.path);
  live(*store);
  auto snapshot = reader->snapshot().value();
  std::string before = dump(*store, false);
  rebuilt(test.path);
  CHECK(snapshot->model("b").value().latest == 3);
  snapshot.reset();
  CHECK(dump(*reader, false) == before);
  CHECK(must_publish(*store, "b", {{10}}).version.number == 4);
  CHECK(reader->snapshot().value()->model("b").value().latest == 4);
}

TEST_CASE("fsck finds an index that is not what the journal says") {
  TestStore test;
  auto store = open_store(test.path);
  live(*store);
  CHECK(fsck(*store) == std::vector<std::string>{});
  REQUIRE(store->gc({}, no_progress()).ok());
  CHECK(fsck(*store) == std::vector<std::string>{});
  auto reader = Store::open(test.path, {}).value();
  CHECK(reader->fsck({}, decode, no_progress()).value().clean());

  auto tamper = [&](const std::function<Status(Txn&)>& change) {
    WriterLock lock = store->parts().index.lock().value();
    REQUIRE(store->parts().index.write(lock, change).ok());
  };
  tamper([](Txn& txn) { return txn.erase(Table::tags, tag_key(2, "x")); });
  tamper([](Txn& txn) { return put(txn, Table::owned, file_key(3, 0), NumberRow{5}); });
  tamper([](Txn& txn) -> Status {
    WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(txn, content_id(3)));
    WEFT_TRY(const std::optional<Holder> holder, first_holder(txn, *blob));
    return remove_holder(txn, *holder, {blob->row.number});
  });
  tamper([](Txn& txn) { return put(txn, Table::children, key_of(9, 9), NumberRow{0}); });
  std::vector<std::string> problems = fsck(*store);
  REQUIRE(problems.size() == 4);
  CHECK(problems[0].find("table tags") != std::string::npos);
  CHECK(problems[1].find("should not be there") != std::string::npos);
  CHECK(problems[2].find("table owned") != std::string::npos);
  CHECK(problems[3].find("table holders") != std::string::npos);

  FsckOptions rebuild;
  rebuild.rebuild = true;
  CHECK(reader->fsck(rebuild, decode, no_progress()).error().code == Errc::read_only);
  CHECK(store->fsck(rebuild, decode, no_progress()).value().rebuilt);
  CHECK(fsck(*store) == std::vector<std::string>{});
}

TEST_CASE("a lost manifest is told, and gc frees nothing while it cannot know what is needed") {
  TestStore test;
  auto store = open_store(test.path);
  live(*store);
  VersionRow lost = must_publish(*store, "m", {{20, 21}}).version;
  std::string path = test.path + "/manifests/" + to_hex(lost.manifest);
  std::string bytes = read_text(path);
  std::filesystem::remove(path);
  CHECK(fsck(*store).size() >= 1);
  FsckReport report = Store::rebuild(test.path, decode, no_progress()).value();
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].find("m@1") != std::string::npos);
  auto gc = store->gc({}, no_progress());
  REQUIRE_FALSE(gc.ok());
  CHECK(gc.error().code == Errc::corrupt);

  SUBCASE("restored") {
    write_file(path, bytes);
    CHECK(Store::rebuild(test.path, decode, no_progress()).value().clean());
    CHECK(store->snapshot().value()->some_holders(content_id(21), 1000).value().size() == 1);
    CHECK(store->gc({}, no_progress()).ok());
  }
  SUBCASE("given up") {
    CHECK(store->remove_version("m", 1).ok());
    CHECK(store->gc({}, no_progress()).ok());
    CHECK(fsck(*store) == std::vector<std::string>{});
  }
}

TEST_CASE("gc reaps a removed version, and its manifest stays with a reader that has it open") {
  TestStore test;
  auto store = open_store(test.path);
  VersionRow version = must_publish(*store, "m", {{1, 2}}).version;
  must_publish(*store, "n", {{2}});
  const auto open = store->open_manifest(version.manifest).value();
  REQUIRE(store->remove_version("m", 1).ok());
  LocalRow local = store->snapshot().value()->local(version.id).value();
  GcOptions dry;
  dry.dry_run = true;
  CHECK(store->gc(dry, no_progress()).value().versions_reaped == 1);
  CHECK(store->snapshot().value()->inode(local.view_inos[0]).value().view_links == 0);
  CHECK(store->gc({}, no_progress()).value().versions_reaped == 1);
  auto snapshot = store->snapshot().value();
  CHECK(snapshot->local(version.id).error().code == Errc::not_found);
  CHECK(snapshot->inode(local.ino_base).error().code == Errc::not_found);
  CHECK(snapshot->inode(local.view_inos[0]).error().code == Errc::not_found);
  CHECK(snapshot->inode(local.view_inos[1]).value().view_links == 2);
  CHECK(store->open_manifest(version.manifest).error().code == Errc::not_found);
  CHECK(sha256(open->bytes()) == version.manifest);
  CHECK(snapshot->version(version.id).value().removed);
}

TEST_CASE("gc removes manifests of publishes that died") {
  TestStore test;
  auto store = open_store(test.path);
  Digest orphan{};
  write_file(test.path + "/manifests/" + to_hex(orphan), "x");
  write_file(test.path + "/manifests/new-0123", "x");
  must_publish(*store, "m", {{1}});
  CHECK(store->gc({}, no_progress()).value().stale_temporaries == 2);
  CHECK(list_directory(test.path + "/manifests").value().size() == 1);
}

TEST_CASE("a manifest whose bytes changed is corrupt, and a new publish heals it") {
  TestStore test;
  auto store = open_store(test.path);
  VersionRow version = must_publish(*store, "m", {{1}}).version;
  write_file(test.path + "/manifests/" + to_hex(version.manifest), "2\n");
  CHECK(store->open_manifest(version.manifest).error().code == Errc::corrupt);
  CHECK(store->remove_version("m", 1).error().code == Errc::corrupt);
  must_publish(*store, "other", {{1}});
  CHECK(store->open_manifest(version.manifest).ok());
}
