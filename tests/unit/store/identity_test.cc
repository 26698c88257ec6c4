// The identity of a store: both copies, its format, and what is beside it.
#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "diskformat/record.h"
#include "diskformat/rows.h"
#include "index_support.h"

using namespace weft;
using namespace weft::testing;

TEST_CASE("a damaged or lost identity is read from its copy, and a rebuild writes both again") {
  TestStore test;
  must_publish(*open_store(test.path), "m", {{1}});
  const std::string uuid = Store::open(test.path, {}).value()->info().uuid;
  for (const char* name : {"/weft-store", "/journal/weft-store"}) {
    const std::string file = test.path + name, whole = read_text(file);
    for (std::size_t bit = 0; bit < whole.size() * 8; bit += 13) {
      std::string bytes = whole;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1U << (bit % 8)));
      write_file(file, bytes);
      CHECK(Store::open(test.path, {}).value()->info().uuid == uuid);
    }
    CHECK(Store::open(test.path, {}).value()->fsck({}, decode, no_progress()).value().problems.size() == 1);
    std::filesystem::remove(file);
    CHECK(Store::open(test.path, {}).value()->info().uuid == uuid);
    CHECK(Store::create(test.path).error().code == Errc::exists);
    CHECK(Store::rebuild(test.path, decode, no_progress()).value().repaired.size() == 1);
    CHECK(read_text(file) == whole);
  }
}

TEST_CASE("a store that lost its identity and the copy gets a new one from a rebuild") {
  for (const bool removed : {true, false}) {
    TestStore test;
    must_publish(*open_store(test.path), "m", {{1}});
    const std::string uuid = Store::open(test.path, {}).value()->info().uuid;
    for (const char* name : {"/weft-store", "/journal/weft-store"}) {
      std::filesystem::remove(test.path + name);
      if (!removed) write_file(test.path + name, "damaged");
    }
    CHECK_FALSE(Store::open(test.path, {}).ok());
    CHECK(Store::create(test.path).error().code == Errc::exists);
    const FsckReport report = Store::rebuild(test.path, decode, no_progress()).value();
    REQUIRE(report.repaired.size() == 2);
    CHECK(report.repaired[0].ends_with("and the store has a new id"));
    auto store = Store::open(test.path, {}).value();
    CHECK(store->info().uuid != uuid);
    CHECK(store->info().format == kStoreFormat);
    CHECK(store->fsck({}, decode, no_progress()).value().problems == std::vector<std::string>{});
    CHECK(store->snapshot().value()->versions(store->snapshot().value()->model("m").value().id).value().rows.size() ==
          1);
  }
}

TEST_CASE("a directory without an identity is no store to a rebuild if its journal says nothing") {
  TestStore test;
  std::filesystem::remove(test.path + "/weft-store");
  std::filesystem::remove(test.path + "/journal/weft-store");
  CHECK(Store::rebuild(test.path, decode, no_progress()).error().code == Errc::not_found);
}

TEST_CASE("fsck of a store without the lock of gc says what to do") {
  TestStore test;
  must_publish(*open_store(test.path), "m", {{1}});
  std::filesystem::remove(test.path + "/index/gc");
  const Error said = Store::open(test.path, {}).value()->fsck({}, decode, no_progress()).error();
  CHECK(said.message.ends_with("index/gc: it is gone; run `weft fsck --rebuild`"));
  CHECK(Store::rebuild(test.path, decode, no_progress()).value().clean());
  CHECK(Store::open(test.path, {}).value()->fsck({}, decode, no_progress()).value().clean());
}

TEST_CASE("a store of another format is refused by name, and a rebuild leaves it unchanged") {
  TestStore test;
  must_publish(*open_store(test.path), "m", {{1}});
  StoreInfo info = Store::open(test.path, {}).value()->info();
  std::filesystem::remove(test.path + "/journal/weft-store");
  const std::string identity = test.path + "/weft-store", index = test.path + "/index/data.mdb";
  const std::string before = read_text(index);
  const std::pair<std::uint32_t, std::string> others[] = {
      {kStoreFormat - 1, "export with the old version, import with the new one"},
      {kStoreFormat + 1, "a newer weft made this store, use that version of weft"}};
  for (const auto& [format, advice] : others) {
    info.format = format;
    const std::vector<std::byte> record = seal_record(RecordKind::identity, encode_row(info));
    write_file(identity, as_text(record));
    for (const Error& refused : {Store::open(test.path, {}).error(), Store::open(test.path, write_options()).error(),
                                 Store::rebuild(test.path, decode, no_progress()).error()}) {
      CHECK(refused.code == Errc::unsupported);
      CHECK(refused.message ==
            fmt::format("{}: expected a store of format {}, got {}: {}", test.path, kStoreFormat, format, advice));
    }
    CHECK(read_text(identity) == as_text(record));
    CHECK(read_text(index) == before);
  }
  write_file(identity, "not a record");
  CHECK(Store::open(test.path, {}).error().code == Errc::corrupt);
}
