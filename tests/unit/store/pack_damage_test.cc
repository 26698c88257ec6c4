// What a rebuild finds again in packs that are damaged, and what a damaged index may not make of whole ones.
#include <doctest/doctest.h>

#include <fcntl.h>

#include <filesystem>

#include <fmt/core.h>

#include "base/sha256.h"
#include "base/sys.h"
#include "index_support.h"
#include "store/hash.h"
#include "store/pack_file.h"
#include "store/toc.h"

using namespace weft;
using namespace weft::testing;

namespace {

PackId pack_of(StoreImpl& store, unsigned content) {
  return store.snapshot().value()->find_blob(content_id(content)).value().pack;
}

FsckReport rebuild(const std::string& path) {
  return Store::rebuild(path, decode, no_progress()).value();
}

std::string state(const std::string& path) {
  return dump(*Store::open(path, {}).value(), false);
}

bool reads(StoreImpl& store, unsigned content) {
  auto place = store.lock_blob(content_id(content));
  if (!place.ok()) return false;
  std::vector<std::byte> bytes(content_id(content).length);
  return read_exact(place->pack->fd(), place->offset, bytes, "pack").ok() && bytes == content_bytes(content);
}

void put_place(StoreImpl& store, unsigned content, const BlobPlace& place) {
  WriterLock lock = store.lock_writer().value();
  const ContentId id = content_id(content);
  REQUIRE(store.env().write(lock, [&](Txn& txn) { return put(txn, Table::blobs, blob_key(id), BlobRow{place}); }).ok());
}

// Imports and publishes m@1, of one file of contents 1 and 2, once more.
PublishOutcome import_again(TestStore& test, StoreImpl& store) {
  auto import = store.begin_import().value();
  std::vector<std::byte> bytes = content_bytes(1);
  const std::vector<std::byte> second = content_bytes(2);
  bytes.insert(bytes.end(), second.begin(), second.end());
  write_file(test.dir / "source", as_text(bytes));
  Fd fd = open_file(test.dir / "source", O_RDONLY).value();
  const std::vector<Range> ranges = {{0, content_id(1).length}, {content_id(1).length, content_id(2).length}};
  REQUIRE(import->add(fd.get(), "source", ranges, no_progress()).ok());
  PublishRequest request;
  request.model = "m";
  request.manifest = manifest_of({{1, 2}});
  request.content = make_content({{1, 2}});
  return import->publish(request).value();
}

void flip(const std::string& path, std::uint64_t offset) {
  std::string bytes = read_text(path);
  bytes[offset] = static_cast<char>(bytes[offset] ^ 1);
  write_file(path, bytes);
}

}  // namespace

TEST_CASE("a pack without its table of contents is searched for what versions need") {
  for (bool removed : {true, false}) {
    CAPTURE(removed);
    TestStore test;
    PackId pack = 0;
    std::string before;
    {
      auto store = open_store(test.path);
      must_publish(*store, "m", {{1, 2, 3}, {4}});
      must_publish(*store, "n", {{5, 6}});
      must_publish(*store, "n", {{7}});
      pack = pack_of(*store, 2);
      before = dump(*store, false);
    }
    if (removed) {
      std::filesystem::remove(toc_path(test.path, pack));
    } else {
      write_file(toc_path(test.path, pack), "damaged");
    }
    std::filesystem::remove_all(test.path + "/index");
    FsckReport report = rebuild(test.path);
    CHECK(report.problems == std::vector<std::string>{});
    REQUIRE(report.repaired.size() == 1);
    CHECK(report.repaired[0].find("4 blobs") != std::string::npos);
    CHECK(state(test.path) == before);
    auto store = open_store(test.path);
    for (unsigned n = 1; n <= 7; ++n) CHECK(reads(*store, n));
    CHECK(store->fsck({}, decode, no_progress()).value().problems == std::vector<std::string>{});
  }
}

TEST_CASE("blobs are found behind what nobody needs any more") {
  TestStore test;
  PackId pack = 0;
  {
    auto store = open_store(test.path);
    must_publish(*store, "m", {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}});
    must_publish(*store, "n", {{1}, {10}});
    REQUIRE(store->remove_version("m", 1).ok());
    pack = pack_of(*store, 1);
  }
  std::filesystem::remove(toc_path(test.path, pack));
  // Content 10 lies at no multiple of 4096 and behind unknown bytes: it may be lost, and then its version is named.
  FsckReport report = rebuild(test.path);
  auto store = open_store(test.path);
  CHECK(reads(*store, 1));
  bool found = reads(*store, 10);
  bool named = report.problems.size() == 1 && report.problems[0].find("n@1") != std::string::npos;
  CHECK(found != named);
}

TEST_CASE("versions that a lost pack hurts are named") {
  TestStore test;
  {
    auto store = open_store(test.path);
    must_publish(*store, "whole", {{1}});
    must_publish(*store, "hurt", {{1, 2}});
    std::filesystem::remove(pack_path(test.path, pack_of(*store, 2)));
  }
  FsckReport report = rebuild(test.path);
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].find("hurt@1: 1 of its extents") != std::string::npos);
  auto store = open_store(test.path);
  CHECK(reads(*store, 1));
  CHECK_FALSE(reads(*store, 2));
}

TEST_CASE("of two packs with one blob the whole one is taken") {
  for (bool cut : {true, false})
    for (PackId other : {PackId{1}, PackId{UINT64_MAX}}) {  // sorted before and after
      CAPTURE(cut);
      CAPTURE(other);
      TestStore test;
      auto store = open_store(test.path);
      must_publish(*store, "m", {{1}});
      PackId pack = pack_of(*store, 1);
      PackToc toc = read_toc_of(test.path, pack).value();
      toc.pack = other;
      REQUIRE(write_toc(toc_path(test.path, other), toc).ok());
      std::string bytes = read_text(pack_path(test.path, pack));
      if (cut) {
        bytes.resize(bytes.size() / 2);
      } else {
        bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
      }
      write_file(pack_path(test.path, other), bytes);
      rebuild(test.path);
      CHECK(pack_of(*store, 1) == pack);
      CHECK(reads(*store, 1));
    }
}

TEST_CASE("a place counts only where the pack lists that blob") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1, 2}});
  must_publish(*store, "n", {{3}});
  BlobPlace two = store->snapshot().value()->find_blob(content_id(2)).value();
  for (const BlobPlace& wrong :
       {BlobPlace{two.pack, two.offset}, BlobPlace{two.pack, 5}, BlobPlace{pack_of(*store, 3), 0}}) {
    put_place(*store, 1, wrong);
    auto place = store->lock_blob(content_id(1));
    REQUIRE_FALSE(place.ok());
    CHECK(place.error().code == Errc::corrupt);
    CHECK(place.error().message.find("weft fsck --rebuild") != std::string::npos);
    // An import that brings the same again relies on no such row either, and puts it right, though it adds no version.
    CHECK_FALSE(import_again(test, *store).made);
    CHECK(reads(*store, 1));
    CHECK(store->fsck({}, decode, no_progress()).value().clean());
  }
}

TEST_CASE("a row of before a collection names no hole") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1, 2, 3}});
  must_publish(*store, "n", {{3}});
  BlobPlace old = store->snapshot().value()->find_blob(content_id(1)).value();
  REQUIRE(store->remove_version("m", 1).ok());
  REQUIRE(store->gc({}, no_progress()).ok());
  put_place(*store, 1, old);
  CHECK_FALSE(reads(*store, 1));
  CHECK(reads(*store, 3));
}

TEST_CASE("importing the good file again replaces damaged bytes for good") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1, 2}});
  const BlobPlace old = store->snapshot().value()->find_blob(content_id(2)).value();
  flip(pack_path(test.path, old.pack), old.offset + 3);
  CHECK_FALSE(reads(*store, 2));
  CHECK_FALSE(import_again(test, *store).made);  // the version is there already
  CHECK(reads(*store, 2));
  CHECK(pack_of(*store, 2) != old.pack);
  CHECK(store->fsck({}, decode, no_progress()).value().clean());
  SUBCASE("a rebuild keeps the good copy") {
    store.reset();
    CHECK(rebuild(test.path).problems.empty());
    store = open_store(test.path);
  }
  SUBCASE("gc frees the damaged one") {
    REQUIRE(store->gc({}, no_progress()).ok());
  }
  CHECK(reads(*store, 1));
  CHECK(reads(*store, 2));
  CHECK(pack_of(*store, 2) != old.pack);
  CHECK(store->fsck({}, decode, no_progress()).value().clean());
}

TEST_CASE("a rebuild brings hints back, and gc takes them with their blobs") {
  TestStore test;
  const auto bytes = random_bytes(3 * kDigestChunk + 5, 1);
  const ContentId id{bytes.size(), tree_sha256(bytes)};
  const std::uint64_t hint = xxh3_64(std::span(bytes).first(kDigestChunk));
  {
    auto store = open_store(test.path);
    must_publish(*store, "m", {{1}});
    auto import = PackImport::begin(test.path, *store, {}).value();
    write_file(test.dir / "source", as_text(bytes));
    Fd fd = open_file(test.dir / "source", O_RDONLY).value();
    const Range all{0, bytes.size()};
    REQUIRE(import->add(fd.get(), "source", std::span(&all, 1), no_progress()).ok());
    REQUIRE(import->finish().ok());
  }
  std::filesystem::remove_all(test.path + "/index");
  CHECK(rebuild(test.path).problems.empty());
  auto store = open_store(test.path);
  CHECK(store->read().value()->hinted(bytes.size(), hint).value() == id);
  CHECK_FALSE(store->read().value()->hinted(bytes.size() + 1, hint).value());
  CHECK_FALSE(store->read().value()->hinted(bytes.size(), hint + 1).value());
  REQUIRE(store->gc({}, no_progress()).ok());
  CHECK_FALSE(store->read().value()->hinted(bytes.size(), hint).value());
}
