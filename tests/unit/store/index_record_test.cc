#include <doctest/doctest.h>

#include <filesystem>

#include <fmt/core.h>

#include "base/limits.h"
#include "diskformat/events.h"
#include "diskformat/hash.h"
#include "diskformat/keys.h"
#include "diskformat/record.h"
#include "diskformat/rows.h"
#include "index_support.h"
#include "weft/names.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<std::byte> sealed(std::string_view payload) {
  return seal_record(RecordKind::number, as_bytes(payload));
}

}  // namespace

TEST_CASE("xxh3 agrees with its published value") {
  CHECK(xxh3_64({}) == 0x2D06800538D394C2ULL);
  auto bytes = random_bytes(10'000, 1);
  CHECK(xxh3_64(bytes, 1) != xxh3_64(bytes));
}

TEST_CASE("a record with any bit flipped does not open") {
  auto record = sealed("payload");
  CHECK(as_text(open_record(RecordKind::number, record, "r").value()) == "payload");
  for (std::size_t bit = 0; bit < record.size() * 8; ++bit) {
    auto damaged = record;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    CHECK_FALSE(open_record(RecordKind::number, damaged, "r").ok());
  }
  for (std::size_t size = 0; size < record.size(); ++size)
    CHECK(open_record(RecordKind::number, std::span(record).first(size), "r").error().code == Errc::corrupt);
  CHECK(open_record(RecordKind::version, record, "r").error().code == Errc::corrupt);
  CHECK(open_record(RecordKind::number, record, "r", 1).error().code == Errc::corrupt);
}

TEST_CASE("a record of another version is refused as such") {
  for (const std::uint8_t version : {std::uint8_t{0}, static_cast<std::uint8_t>(kRecordVersion + 1)}) {
    auto record = sealed("payload");
    record[14] = std::byte{version};
    std::uint64_t sum = xxh3_64(std::span(record).subspan(8));
    for (unsigned i = 0; i < 8; ++i) record[i] = static_cast<std::byte>(sum >> (8 * i));
    auto opened = open_record(RecordKind::number, record, "r");
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.error().code == Errc::unsupported);
    CHECK(opened.error().message.ends_with(fmt::format("expected record version {}, got {}", kRecordVersion, version)));
  }
}

TEST_CASE("events keep their authors") {
  const auto author_after = [](auto event, const Author& by) {
    event.by = by;
    const auto read = decode_event(encode_event(event, 7), "e");
    REQUIRE(read.ok());
    return std::get<decltype(event)>(read->event).by;
  };
  PublishEvent publish;
  publish.version.number = 1;
  for (const Author& by : {Author{}, Author{"alice", ""}, Author{"alice", "node1"}, Author{"", "node1"}}) {
    CHECK(author_after(publish, by) == by);
    CHECK(author_after(TagsEvent{1, "m", 2, {{"t", 1, 5000}}}, by) == by);
    CHECK(author_after(RemovalEvent{1, "m", 1, 2, 0, {}}, by) == by);
  }
}

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
  for (const std::uint32_t format : {kStoreFormat - 1, kStoreFormat + 1}) {
    info.format = format;
    const std::vector<std::byte> record = seal_record(RecordKind::identity, encode_row(info));
    write_file(identity, as_text(record));
    for (const Error& refused : {Store::open(test.path, {}).error(), Store::open(test.path, write_options()).error(),
                                 Store::rebuild(test.path, decode, no_progress()).error()}) {
      CHECK(refused.code == Errc::unsupported);
      CHECK(
          refused.message ==
          fmt::format("{}: expected a store of format {}, got {}: export with the old version, import with the new one",
                      test.path, kStoreFormat, format));
    }
    CHECK(read_text(identity) == as_text(record));
    CHECK(read_text(index) == before);
  }
  write_file(identity, "not a record");
  CHECK(Store::open(test.path, {}).error().code == Errc::corrupt);
}

TEST_CASE("rows of random bytes are errors, never crashes") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    auto bytes = random_bytes(seed, seed);
    CHECK_FALSE(decode_row<VersionRow>(bytes, "row").ok());
    CHECK_FALSE(decode_row<LocalRow>(bytes, "row").ok());
    CHECK_FALSE(decode_row<InodeRow>(bytes, "row").ok());
    CHECK_FALSE(decode_event(seal_record(RecordKind::publish, bytes), "event").ok());
    CHECK_FALSE(decode_event(seal_record(RecordKind::toc, bytes), "event").ok());
  }
}

TEST_CASE("an event of a kind that is not known is unsupported") {
  const auto unknown = static_cast<RecordKind>(static_cast<int>(RecordKind::counters) - 1);
  const Error refused = decode_event(seal_record(unknown, {}), "event").error();
  CHECK(refused.code == Errc::unsupported);
  CHECK(refused.message == "event: another version of weft wrote this: expected a kind of event that is known, got 31");
}

TEST_CASE("an undelete survives encoding, and impossible numbers are refused") {
  UndeleteEvent event{3, "org/m", 2, 9, {2000, 10, {1, 2}, {{7, 2}}, {}}, false, false, 5};
  const auto record = encode_event(event, 7);
  const auto again = std::get<UndeleteEvent>(decode_event(record, "event").value().event);
  CHECK(again.model == "org/m");
  CHECK(again.time_ns == 9);
  CHECK(again.local.view_inos == event.local.view_inos);
  CHECK(again.local.blobs == event.local.blobs);
  CHECK(again.revision == 5);
  CHECK(event_text(again) == "undelete of org/m@2");
  event.reaped = true;  // and not bare
  CHECK_FALSE(decode_event(encode_event(event, 7), "event").ok());
  event.bare = true;
  CHECK(decode_event(encode_event(event, 7), "event").ok());
  event.local.ino_count = 0;
  CHECK_FALSE(decode_event(encode_event(event, 7), "event").ok());
}

TEST_CASE("rows and events come back as they went") {
  VersionRow row{7,
                 3,
                 "org/m",
                 2,
                 {},
                 5,
                 6,
                 "text",
                 {{"a", "b"}},
                 {{"p", 1, false, 2, 3, 4}},
                 true,
                 8,
                 9,
                 10,
                 {"else"},
                 11,
                 12,
                 "6fa459ea-ee8a-4ca4-894e-db77e160355e",
                 "the machine stopped",
                 VersionKind::model,
                 13,
                 14,
                 std::string(kCommitDigits, 'e')};
  row.manifest.bytes[3] = 9;
  row.undeleted_ns = 13;
  row.removed_tags = {"x", "y"};
  VersionRow back = decode_row<VersionRow>(encode_row(row), "row").value();
  CHECK(encode_row(back) == encode_row(row));
  CHECK(back.manifest == row.manifest);
  CHECK(back.parents.at(0).model == "p");
  CHECK(back.parents.at(0).same_bytes == 3);
  CHECK_FALSE(back.parents.at(0).declared);
  CHECK(back.elsewhere == std::vector<std::string>{"else"});
  CHECK(back.tensor_bytes == 10);
  CHECK(back.died == 12);
  CHECK(back.undeleted_ns == 13);
  CHECK(back.removed_tags == row.removed_tags);
  CHECK(back.publisher == row.publisher);
  CHECK(back.source_commit == row.source_commit);

  PublishEvent event;
  event.version = row;
  event.tags = {{"t", 5}};
  event.local = {2000, 10, {1, 2, 3}, {{7, 2}, {20, 1}}, {}};
  event.packs = {42};
  auto record = encode_event(event, 7);
  CHECK(record_length(record) == record.size());
  CHECK(decode_event(record, "event").value().place == 7);
  auto again = std::get<PublishEvent>(decode_event(record, "event").value().event);
  CHECK(encode_event(again, 7) == record);
  CHECK(again.local.view_inos == std::vector<Ino>{1, 2, 3});
  CHECK(again.local.blobs == std::vector<Range>{{7, 2}, {20, 1}});
  CHECK(again.packs.at(0) == 42);
  CHECK(again.version.elsewhere.at(0) == "else");
  CHECK(again.version.tensors == 9);
  CHECK(again.version.undeleted_ns == 13);
  CHECK(again.version.source_commit == row.source_commit);
  again.version.source_commit = "main";
  CHECK(decode_event(encode_event(again, 7), "event").error().code == Errc::corrupt);
  event.local.ino_count = UINT64_MAX;
  CHECK(decode_event(encode_event(event, 7), "event").error().code == Errc::corrupt);
}

TEST_CASE("keys sort as their numbers do") {
  CHECK(key_of(255) < key_of(256));
  CHECK(file_key(1, 0xffffffff) < file_key(2, 0));
  CHECK(blob_key({5, Digest{{0xff}}}) < blob_key({256, Digest{}}));
  CHECK(blob_key({5, Digest{{1}}}) < blob_key({5, Digest{{2}}}));
  CHECK(blob_length(blob_key({5, Digest{{1}}})) == 5);
  CHECK(number_at("short", 0) == 0);
  CHECK(split_name("a/b/c") == std::pair<std::string_view, std::string_view>{"a/b", "c"});
  const std::string key = held_key(3, {4, 6});
  CHECK(holder_at(key) == Holder{4, 6});
  CHECK(decode_held(key, encode_held(key, 9)) == 9);
  CHECK_FALSE(decode_held(held_key(3, {4, 7}), encode_held(key, 9)));
  CHECK(held_key(3, {4, 6}) < held_key(3, {5, 0}));
  CHECK(held_key(3, {5, 0}) < held_key(4, {1, 0}));
  ViewKey view{content_id(1), DType::u8, {2, 3}, ""};
  ViewKey other = view;
  other.shape = {3, 2};
  CHECK(view_key(view) != view_key(other));
  other = view;
  other.shape.clear();
  other.descr = view_key(view).substr(0, 24);
  CHECK(view_key(view) != view_key(other));
}

TEST_CASE("a repair's counters may stand behind the last id, and no further") {
  RepairEvent event;
  event.counters.next_version = event.counters.next_model = limits::kIdMax + 1;
  event.counters.next_ino = limits::kStoredInoMax;
  const auto opens = [&] { return decode_event(encode_event(event, 7), "event").ok(); };
  CHECK(opens());
  event.counters.next_model = limits::kIdMax + 2;
  CHECK_FALSE(opens());
  event.counters.next_model = 1;
  event.counters.next_version = limits::kIdMax + 2;
  CHECK_FALSE(opens());
  event.counters.next_version = 1;
  event.counters.next_ino = limits::kStoredInoMax + 1;
  CHECK_FALSE(opens());
}
