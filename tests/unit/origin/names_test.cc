// Records of an origin's journal: parsing, also of hostile bytes, and merging.
#include "origin/names.h"

#include <doctest/doctest.h>

#include "diskformat/catalog_record.h"
#include "diskformat/record.h"
#include "testing.h"

namespace weft::testing {
namespace {

constexpr std::uint64_t kMinute = 60ULL * 1'000'000'000;

CatalogRecord tag(std::uint64_t number, std::uint64_t time_ns, std::uint64_t revision, std::string cluster = "one") {
  return {MirroredTag{"m", "t", number, time_ns, revision, {}, {number, 0}}, std::move(cluster)};
}

std::uint64_t last(const std::vector<CatalogRecord>& records) {
  return last_of(records).number;
}

VersionRow version(std::string model, std::uint64_t number, std::uint64_t time_ns, std::vector<ParentRef> parents) {
  VersionRow row;
  row.model_name = std::move(model);
  row.number = number;
  row.time_ns = time_ns;
  row.parents = std::move(parents);
  return row;
}

std::string order_of(const std::vector<VersionRow>& rows) {
  std::map<OriginNames::Name, VersionRow> versions;
  for (const VersionRow& row : rows) versions[{row.model_name, row.number}] = row;
  std::string order;
  for (const VersionRow* row : in_order(versions)) order += row->model_name + std::to_string(row->number) + " ";
  return order;
}

bool decodes(const CatalogEvent& event) {
  return decode_catalog_event(encode_catalog_event(event, "one"), "test").ok();
}

}  // namespace

TEST_CASE("an origin record survives encoding, and all nodes give it one name") {
  VersionRow row = version("org/model", 3, 5, {});
  row.message = "text";
  VersionRow elsewhere = row;  // the same version on another node
  elsewhere.id = 77;
  elsewhere.born = 99;
  CHECK(catalog_event_name(row, "one") == catalog_event_name(elsewhere, "one"));
  const auto read = decode_catalog_event(encode_catalog_event(row, "one"), "test");
  REQUIRE(read.ok());
  CHECK(std::get<VersionRow>(read->event).message == "text");
  const MirroredTag tag{"m", "t", 2, 3, 4, {"alice", "node1"}, {5, 6}, 7, "bob"};
  const auto tagged = decode_catalog_event(encode_catalog_event(tag, "one"), "test");
  REQUIRE(tagged.ok());
  CHECK(std::get<MirroredTag>(tagged->event).revision == 4);
  CHECK(std::get<MirroredTag>(tagged->event).by == tag.by);
  CHECK(std::get<MirroredTag>(tagged->event).owner == "bob");
  CHECK(tagged->cluster == "one");
  CHECK(catalog_event_name(tagged->event, "one").ends_with(".tag"));
  CHECK(catalog_event_name(tagged->event, "one") != catalog_event_name(tagged->event, "other"));
  const auto gone = decode_catalog_event(encode_catalog_event(MirroredRemoval{"m", 2, 3, "lost: why"}, "one"), "test");
  REQUIRE(gone.ok());
  CHECK(std::get<MirroredRemoval>(gone->event).number == 2);
  CHECK(std::get<MirroredRemoval>(gone->event).lost == "lost: why");
  CHECK(catalog_event_name(gone->event, "one").ends_with(".rm"));
  const auto back = decode_catalog_event(encode_catalog_event(MirroredUndelete{"m", 2, 4}, "one"), "test");
  REQUIRE(back.ok());
  CHECK(std::get<MirroredUndelete>(back->event).time_ns == 4);
  CHECK(catalog_event_name(back->event, "one").ends_with(".undelete"));
  const auto moved = decode_catalog_event(encode_catalog_event(MirroredRenumber{"m", 2, 5, 4, {1, 2}}, "one"), "test");
  REQUIRE(moved.ok());
  CHECK(std::get<MirroredRenumber>(moved->event).to == 5);
  CHECK(std::get<MirroredRenumber>(moved->event).uid == Uuid{1, 2});
  CHECK(catalog_event_name(moved->event, "one").ends_with(".moved"));
  const MirroredDescription note{"m", 2, "text", {{"loss", "0.5"}}, 9};
  const auto noted = decode_catalog_event(encode_catalog_event(note, "one"), "test");
  REQUIRE(noted.ok());
  CHECK(std::get<MirroredDescription>(noted->event).metrics == note.metrics);
  CHECK(catalog_event_name(noted->event, "one").ends_with(".note"));
}

TEST_CASE("records that are cut, of impossible names and numbers, or of an unknown kind do not pass") {
  const auto record = encode_catalog_event(MirroredTag{"m", "t", 2, 3, 4}, "one");
  for (std::size_t cut = 0; cut < record.size(); ++cut)
    CHECK(decode_catalog_event(std::span(record).first(cut), "test").error().code == Errc::corrupt);
  for (std::size_t at = 0; at < record.size(); ++at) {
    auto damaged = record;
    damaged[at] ^= std::byte{1};
    CHECK(!decode_catalog_event(damaged, "test").ok());
  }
  CHECK(decodes(version("m", 1, 1, {})));
  CHECK(!decodes(version("m", 0, 1, {})));
  CHECK(!decodes(version("m", 1ULL << 40U, 1, {})));
  CHECK(!decodes(version("", 1, 1, {})));
  CHECK(!decodes(version(std::string(1000, 'm'), 1, 1, {})));
  CHECK(!decodes(version("m", 1, 1, std::vector<ParentRef>(1000))));
  VersionRow chatty = version("m", 1, 1, {});
  chatty.message.assign(1U << 20U, 'x');
  CHECK(!decodes(chatty));
  VersionRow late = version("m", 1, 1, {});
  late.described_ns = UINT64_MAX;
  CHECK(!decodes(late));
  VersionRow twice = version("m", 1, 1, {});
  twice.metrics = {{"loss", "1"}, {"loss", "2"}};
  CHECK(!decodes(twice));
  CHECK(!decodes(MirroredTag{"m", "latest", 1, 1, 1}));
  CHECK(!decodes(MirroredTag{"m", "a/b", 1, 1, 1}));
  CHECK(!decodes(MirroredTag{"m", "t", UINT64_MAX, 1, 1}));
  CHECK(!decodes(MirroredTag{"m", "t", 1, 1, 1, {"two\nlines", ""}}));
  CHECK(!decodes(MirroredRemoval{"m", 0, 1}));
  CHECK(!decodes(MirroredUndelete{"m", 0, 1}));
  CHECK(!decodes(MirroredUndelete{"m//n", 1, 1}));
  CHECK(decodes(MirroredRenumber{"m", 1, 2, 1}));
  CHECK(!decodes(MirroredRenumber{"m", 1, 0, 1}));
  CHECK(!decodes(MirroredRenumber{"m", 1, UINT64_MAX, 1}));
  CHECK(!decodes(MirroredDescription{"m", 0, "", {}, 1}));
  CHECK(!decodes(MirroredDescription{"m", 1, "", {}, 0}));
  CHECK(!decodes(MirroredDescription{"m", 1, "", {}, UINT64_MAX}));
  CHECK(!decodes(MirroredDescription{"m", 1, std::string(1, '\a'), {}, 1}));
  CHECK(!decodes(MirroredDescription{"m", 1, std::string(1U << 20U, 'x'), {}, 1}));
  CHECK(!decodes(MirroredDescription{"m", 1, "", Metrics(1000, {"k", "v"}), 1}));
  CHECK(!decodes(MirroredRemoval{"m//n", 1, 1}));
  CHECK(!decodes(MirroredRemoval{"m", 1, 1, "two\nlines"}));
  CHECK(!decodes(MirroredRemoval{"m", 1, 1, std::string(1U << 20U, 'x')}));
  CHECK(
      !decode_catalog_event(encode_catalog_event(MirroredTag{"m", "t", 1, 1, 1}, std::string(1000, 'c')), "test").ok());
  CHECK(decode_catalog_event(seal_record(static_cast<RecordKind>(15), as_bytes("x")), "test").error().code ==
        Errc::corrupt);
  CHECK(!decode_catalog_event(seal_record(RecordKind::catalog_tag, as_bytes("not a table")), "test").ok());
}

TEST_CASE("the last record of a tag counts, whatever the clocks say") {
  CHECK(last({tag(1, 10, 1), tag(2, 20, 2), tag(0, 21, 3)}) == 0);
  CHECK(last({tag(0, 21, 3), tag(2, 20, 2), tag(1, 10, 1)}) == 0);
  CHECK(last({tag(1, kMinute, 1), tag(2, 1, 2)}) == 2);             // the clock of the second node is slow
  CHECK(last({tag(1, 61 * kMinute, 1), tag(2, kMinute, 2)}) == 2);  // the clock of the first is an hour ahead
  CHECK(last({tag(2, kMinute, 2), tag(1, 61 * kMinute, 1), tag(0, 2 * kMinute, 3)}) == 0);
  CHECK(last({tag(1, 61 * kMinute, 0), tag(2, kMinute, 0)}) == 1);     // without revisions
  CHECK(last({tag(1, kMinute, 1, "two"), tag(2, 1, 2, "one")}) == 1);  // the records are of two registries
  CHECK(last({tag(2, 1, 9), tag(1, kMinute, 7), tag(0, kMinute + 1, 8)}) == 2);
  CatalogRecord later = tag(3, 1, 1);  // of a registry that was set back and reconciled
  std::get<MirroredTag>(later.event).generation = 1;
  CHECK(last({tag(1, kMinute, 7), later, tag(2, 1, 9)}) == 3);
}

TEST_CASE("a registry that was filled from the origin follows the one before, whatever the clocks say") {
  const CatalogRecord before = tag(1, 61 * kMinute, 90), earlier = tag(3, 1, 80);
  CHECK(last({earlier, before, tag(1, 61 * kMinute, 5, "new")}) == 1);
  CHECK(last({earlier, before, tag(1, 61 * kMinute, 5, "new"), tag(2, 2 * kMinute, 6, "new")}) == 2);
  CHECK(last({tag(2, 2 * kMinute, 6, "new"), tag(1, 61 * kMinute, 5, "new"), before, earlier}) == 2);
  CHECK(last({earlier, before, tag(2, 2 * kMinute, 6, "other")}) == 1);
}

TEST_CASE("versions come by time, numbers of a model ascending, parents first") {
  CHECK(order_of({version("a", 1, 5, {}), version("b", 1, 3, {}), version("a", 2, 4, {})}) == "b1 a1 a2 ");
  CHECK(order_of({version("a", 1, 1, {{"b", 2, true, 0, 0, 0}}), version("b", 1, 9, {}), version("b", 2, 8, {})}) ==
        "b1 b2 a1 ");
  CHECK(order_of({version("a", 1, 1, {{"b", 1, true, 0, 0, 0}}), version("b", 1, 2, {{"a", 1, true, 0, 0, 0}})}) ==
        "b1 a1 ");  // a cycle of parents
  std::vector<VersionRow> chain;
  for (std::uint64_t i = 1; i <= 100'000; ++i) chain.push_back(version("m", i, 1'000'000 - i, {}));
  CHECK(order_of(chain).starts_with("m1 m2 m3 "));
}

}  // namespace weft::testing
