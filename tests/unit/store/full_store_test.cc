// A store whose counters reach the limits of the inode numbers of a mount (limits::kStoredInoMax, limits::kIdMax).
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "base/limits.h"
#include "index_support.h"

using namespace weft;
using namespace weft::testing;

namespace {

// Raises the counters, as if these numbers were in use.
void raise(StoreImpl& store, const Counters& floors) {
  const WriterLock lock = must(store.parts().index.lock());
  must(store.parts().index.write(lock, [&](Txn& txn) { return raise_counters(txn, floors); }));
}

Counters at_ino(Ino next) {
  Counters counters;
  counters.next_ino = next;
  return counters;
}
Counters at_version(VersionId next) {
  Counters counters;
  counters.next_version = next;
  return counters;
}
Counters at_model(ModelId next) {
  Counters counters;
  counters.next_model = next;
  return counters;
}

void check_refused(const Status& status, std::string_view what) {
  REQUIRE_FALSE(status.ok());
  CAPTURE(status.error().message);
  CHECK(status.error().code == Errc::unsupported);
  CHECK(status.error().message.find("the store is full") != std::string::npos);
  CHECK(status.error().message.find(what) != std::string::npos);
  CHECK(status.error().message.find('\n') == std::string::npos);
}

Status status_of(const Result<PublishOutcome>& outcome) {
  return outcome.ok() ? Status{} : Status{outcome.error()};
}

std::vector<std::string> fsck(StoreImpl& store) {
  return store.fsck({}, decode, no_progress()).value().problems;
}

}  // namespace

TEST_CASE("a publish above the last inode number is refused by name, and leaves the store as it was") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1}});
  raise(*store, at_ino(limits::kStoredInoMax - 3));
  const std::string before = dump(*store);
  check_refused(status_of(publish(*store, "m", {{2}})), std::to_string(limits::kStoredInoMax));
  check_refused(status_of(publish(*store, "org/other", {{2}})), std::to_string(limits::kStoredInoMax));
  CHECK(dump(*store) == before);
  CHECK(store->set_tag("m", "one", 1).ok());
  CHECK(store->set_tag("m", "two", 1).ok());
  CHECK(store->set_tag("m", "three", 1).ok());
  const std::string tagged = dump(*store);
  check_refused(store->set_tag("m", "four", 1), std::to_string(limits::kStoredInoMax));
  CHECK(dump(*store) == tagged);
  CHECK(store->set_tag("m", "one", std::nullopt).ok());
  CHECK(store->remove_version("m", 1).ok());
}

TEST_CASE("a publish above the last version or model is refused by name, and leaves the store as it was") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1}});
  SUBCASE("the last version is published") {
    raise(*store, at_version(limits::kIdMax));
    const VersionRow last = must_publish(*store, "m", {{2}}, {{{"m", 1}}, {"prod"}}).version;
    CHECK(last.id == limits::kIdMax);
    CHECK(last.number == 2);
    const std::string before = dump(*store);
    check_refused(status_of(publish(*store, "m", {{3}})),
                  fmt::format("m: the store is full: it has numbered {} versions", limits::kIdMax));
    CHECK(dump(*store) == before);
    CHECK(fsck(*store) == std::vector<std::string>{});
    store.reset();
    std::filesystem::remove_all(test.path + "/index");
    must(Store::rebuild(test.path, decode, no_progress()));
    store = open_store(test.path);
    CHECK(dump(*store) == before);
    check_refused(status_of(publish(*store, "m", {{3}})), "m: ");
  }
  SUBCASE("the last model is made") {
    raise(*store, at_model(limits::kIdMax));
    must_publish(*store, "last", {{2}});
    const std::string before = dump(*store);
    check_refused(status_of(publish(*store, "org/more", {{3}})), "org/more: ");
    CHECK(dump(*store) == before);
    must_publish(*store, "last", {{3}});
    must_publish(*store, "m", {{3}});
    CHECK(fsck(*store) == std::vector<std::string>{});
  }
}
