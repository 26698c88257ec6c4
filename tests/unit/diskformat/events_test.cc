// Events of the journal and rows of the index, as bytes.
#include "diskformat/events.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/limits.h"
#include "base/plain_text.h"
#include "diskformat/record.h"
#include "diskformat/rows.h"
#include "testing.h"
#include "weft/names.h"

using namespace weft;
using namespace weft::testing;

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
                 {"https://hub.example", "hf:org/m", "main", std::string(kCommitDigits, 'e'), "private", 15, {"u"}, 1}};
  row.manifest.bytes[3] = 9;
  row.undeleted_ns = 13;
  row.removed_tags = {"x", "y"};
  row.by = {"alice", "node1"};
  row.uid = {17, 18};
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
  CHECK(back.by == row.by);
  CHECK(back.source == row.source);
  CHECK(back.uid == row.uid);

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
  CHECK(again.version.uid == row.uid);
  CHECK(again.version.source == row.source);
  again.version.source.commit = "main";
  CHECK(decode_event(encode_event(again, 7), "event").error().code == Errc::corrupt);
  event.local.ino_count = UINT64_MAX;
  CHECK(decode_event(encode_event(event, 7), "event").error().code == Errc::corrupt);
}

TEST_CASE("a source lists few URLs, and counts the others") {
  Provenance source;
  CHECK(source.empty());
  add_url(source, std::string(limits::kSourceTextMax + 1, 'a'));
  add_url(source, "https://a.example/\xff");
  CHECK(source.urls.empty());
  for (std::size_t i = 0; i < limits::kSourceUrlsMax + 3; ++i) add_url(source, fmt::format("https://a.example/{}", i));
  CHECK(source.urls.size() == limits::kSourceUrlsMax);
  CHECK(source.left_out == 5);
  CHECK(check_source(source).ok());
  PublishEvent event;
  event.version.number = 1;
  event.version.source = source;
  const auto again = std::get<PublishEvent>(decode_event(encode_event(event, 7), "event").value().event);
  CHECK(again.version.source == source);
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
    publish.version.by = by;
    CHECK(std::get<PublishEvent>(decode_event(encode_event(publish, 7), "e").value().event).version.by == by);
    CHECK(author_after(TagsEvent{1, "m", 2, {{"t", 1, 5000}}}, by) == by);
    CHECK(author_after(RemovalEvent{1, "m", 1, 2, 0, {}}, by) == by);
  }
}

TEST_CASE("records about a version keep its identity, and changes of a registry their stamps") {
  const auto again = [](auto event) {
    return std::get<decltype(event)>(decode_event(encode_event(event, 7), "e").value().event);
  };
  const Uuid uid{5, 6};
  const RegistryStamp at{8, 9};
  const RemovalEvent removal = again(RemovalEvent{1, "m", 1, 2, 0, {}, {}, {}, uid, at});
  CHECK(removal.uid == uid);
  CHECK(removal.at == at);
  CHECK(again(DescriptionEvent{1, "m", 1, "", {}, 2, 0, uid}).uid == uid);
  const TagsEvent tags = again(TagsEvent{1, "m", 2, {{"t", 1, 5000, uid}}, 0, at});
  CHECK(tags.changes.at(0).uid == uid);
  CHECK(tags.at == at);
  const RenumberEvent renumber = again(RenumberEvent{1, "m", 2, 5, 3, 4, uid});
  CHECK(renumber.to == 5);
  CHECK(renumber.time_ns == 3);
  CHECK(renumber.uid == uid);
  CHECK(event_text(renumber) == "new number 5 of m@2");
  for (const std::uint64_t to : {std::uint64_t{0}, std::uint64_t{2}, limits::kVersionNumberMax + 1})
    CHECK(decode_event(encode_event(RenumberEvent{1, "m", 2, to}, 7), "e").error().code == Errc::corrupt);
  const PurgeEvent purge = again(PurgeEvent{1, "m", 2, 3, 4, {"ada", "node1"}, uid});
  CHECK(purge.time_ns == 3);
  CHECK(purge.by == Author{"ada", "node1"});
  CHECK(purge.uid == uid);
  CHECK(event_text(purge) == "purge of m@2");
  CHECK(decode_event(encode_event(PurgeEvent{1, "m", 0}, 7), "e").error().code == Errc::corrupt);
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

TEST_CASE("an event of a kind that is not known is unsupported") {
  const auto unknown = static_cast<RecordKind>(static_cast<int>(RecordKind::counters) - 1);
  const Error refused = decode_event(seal_record(unknown, {}), "event").error();
  CHECK(refused.code == Errc::unsupported);
  CHECK(refused.message == "event: another version of weft wrote this: expected a kind of event that is known, got 31");
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
