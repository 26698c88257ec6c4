// Rebuilds that use assembled files, and the fate of damaged assembled files.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "index_support.h"
#include "os/sys.h"
#include "store_paths.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr PackId kAssembled = 0x1234;

PackId pack_of(StoreImpl& store, unsigned content) {
  return store.snapshot().value()->find_blob(content_id(content)).value().pack;
}

bool reads(StoreImpl& store, unsigned content) {
  auto place = store.open_blob(content_id(content));
  if (!place.ok()) return false;
  std::vector<std::byte> bytes(content_id(content).length);
  return read_exact(place->pack->fd(), place->offset, bytes, "pack").ok() && bytes == content_bytes(content);
}

void flip(const std::string& path, std::uint64_t offset) {
  std::string bytes = read_text(path);
  bytes[offset] = static_cast<char>(bytes[offset] ^ 1);
  write_file(path, bytes);
}

// A store with the versions m@1 (contents 1 and 2) and n@1 (content 3), and one assembled file of all three.
struct AssembledStore : TestStore {
  AssembledStore() {
    auto store = open_store(path);
    must_publish(*store, "m", {{1, 2}});
    must_publish(*store, "n", {{3}});
    pack = pack_of(*store, 2);
    offset = store->snapshot().value()->find_blob(content_id(2)).value().offset;
    assemble(path, {1, 2, 3}, kAssembled);
  }
  FsckReport rebuild(bool data = true) {
    return Store::rebuild(path, decode, no_progress(), {false, {}, data}).value();
  }
  void check_whole() {
    auto store = open_store(path);
    for (unsigned n = 1; n <= 3; ++n) CHECK(reads(*store, n));
    CHECK(store->fsck({}, decode, no_progress()).value().problems == std::vector<std::string>{});
    REQUIRE(store->gc({.all = true}, no_progress()).ok());
    for (unsigned n = 1; n <= 3; ++n) CHECK(reads(*store, n));
    CHECK(list_directory(path + "/tmp").value().empty());
  }
  std::string assembled_pack() const { return pack_in(path + "/cache", kAssembled); }
  std::string assembled_toc() const { return toc_in(path + "/cache", kAssembled); }

  PackId pack = 0;           // of the contents 1 and 2
  std::uint64_t offset = 0;  // of the content 2
};

}  // namespace

TEST_CASE("a blob that an assembled file alone has whole is copied from there") {
  for (const char* toc : {"whole", "damaged", "gone"})
    for (const char* damage : {"flip", "pack gone", "both gone", "cut"}) {
      CAPTURE(toc);
      CAPTURE(damage);
      AssembledStore test;
      const std::string what = damage, file = pack_path(test.path, test.pack);
      if (what == "flip") flip(file, test.offset + 500);
      if (what == "cut") std::filesystem::resize_file(file, test.offset + 500);
      if (what.ends_with("gone")) std::filesystem::remove(file);
      if (what == "both gone") std::filesystem::remove(toc_path(test.path, test.pack));
      if (std::string(toc) == "damaged") flip(test.assembled_toc(), 40);
      if (std::string(toc) == "gone") std::filesystem::remove(test.assembled_toc());
      const FsckReport report = test.rebuild();
      CHECK(report.rebuilt);
      CHECK(report.problems == std::vector<std::string>{});
      const std::string said = what.ends_with("gone") ? "of 2 blobs" : "of 1 blobs";
      CHECK(std::ranges::any_of(report.repaired, [&](const std::string& line) {
        return line.find("made from assembled files, " + said) != std::string::npos;
      }));
      test.check_whole();
    }
}

TEST_CASE("a rebuild that reads no data copies what lost packs had from assembled files") {
  AssembledStore test;
  std::filesystem::remove(pack_path(test.path, test.pack));
  CHECK(test.rebuild(false).problems == std::vector<std::string>{});
  test.check_whole();
}

TEST_CASE("assembled files that changed places are searched") {
  AssembledStore test;
  assemble(test.path, {3, 1}, kAssembled + 1);
  const std::string other = pack_in(test.path + "/cache", kAssembled + 1);
  const std::string one = read_text(test.assembled_pack()), two = read_text(other);
  write_file(other, one);
  write_file(test.assembled_pack(), two);
  flip(pack_path(test.path, test.pack), test.offset);
  CHECK(test.rebuild().problems == std::vector<std::string>{});
  test.check_whole();
}

TEST_CASE("a rebuild that refuses a loss leaves no pack of what it found") {
  AssembledStore test;
  std::filesystem::remove(pack_path(test.path, test.pack));
  {
    auto store = open_store(test.path);
    write_file(toc_path(test.path, pack_of(*store, 3)), "damaged");
    flip(pack_path(test.path, pack_of(*store, 3)), 0);
  }
  flip(test.assembled_pack(), content_id(1).length + content_id(2).length);  // no copy of 3 is left
  const auto packs = list_directory(test.path + "/packs").value();
  CHECK(test.rebuild().refused);
  CHECK(list_directory(test.path + "/packs").value() == packs);
  CHECK(list_directory(test.path + "/tmp").value().empty());
  CHECK(Store::rebuild(test.path, decode, no_progress(), {true, {}}).value().rebuilt);
  auto store = open_store(test.path);
  CHECK(reads(*store, 1));
  CHECK(reads(*store, 2));
}

TEST_CASE("fsck keeps a damaged assembled file while the store needs a repair, and a rebuild deletes it") {
  AssembledStore test;
  flip(test.assembled_pack(), 0);  // content 1, which the pack holds too
  flip(pack_path(test.path, test.pack), test.offset);
  const FsckReport found = open_store(test.path)->fsck({}, decode, no_progress()).value();
  REQUIRE(found.problems.size() == 2);
  CHECK(found.problems[1].ends_with("; kept until the rest is repaired"));
  CHECK(std::filesystem::exists(test.assembled_pack()));
  CHECK(test.rebuild().problems == std::vector<std::string>{});
  CHECK_FALSE(std::filesystem::exists(test.assembled_pack()));
  test.check_whole();
}

TEST_CASE("after a rebuild no damaged assembled file is left for fsck to find") {
  for (const bool toc : {true, false}) {
    AssembledStore test;
    flip(toc ? test.assembled_toc() : test.assembled_pack(), 30);
    const FsckReport report = test.rebuild();
    CHECK(report.clean());
    CHECK(report.repaired.size() == 1);
    test.check_whole();
  }
}

TEST_CASE("a pack that changed places with one that no version needs is found there") {
  TestStore test;
  {
    auto store = open_store(test.path);
    must_publish(*store, "m", {{1, 2}});
    must_publish(*store, "n", {{3}});
    REQUIRE(store->remove_version("n", 1).ok());
    const std::string one = pack_path(test.path, pack_of(*store, 1));
    const PackId dead = store->parts().blobs.read().value()->find(content_id(3)).value()->pack;
    const std::string two = pack_path(test.path, dead);
    std::filesystem::rename(one, test.path + "/away");
    std::filesystem::rename(two, one);
    std::filesystem::rename(test.path + "/away", two);
  }
  CHECK(Store::rebuild(test.path, decode, no_progress()).value().problems == std::vector<std::string>{});
  auto store = open_store(test.path);
  CHECK(reads(*store, 1));
  CHECK(reads(*store, 2));
  CHECK(store->fsck({}, decode, no_progress()).value().problems == std::vector<std::string>{});
}
