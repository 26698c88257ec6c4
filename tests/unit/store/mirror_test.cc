#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include <fmt/core.h>

#include "base/sha256.h"
#include "cluster_support.h"
#include "store_paths.h"
#include "weft/store/walk.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::string rebuilt(const std::string& path) {
  FsckReport report = Store::rebuild(path, decode, no_progress()).value();
  CHECK(report.problems == std::vector<std::string>{});
  return dump(*Store::open(path, {}).value(), false);
}

std::vector<std::string> fsck(Store& store) {
  return store.fsck({}, decode, no_progress()).value().problems;
}

VersionRow version_of(Store& store, std::string_view name, std::uint64_t number) {
  return store.snapshot().value()->version(model_of(store, name).value().id, number).value();
}

}  // namespace

TEST_CASE("a mirrored version is listed with its record's facts, and is bare until adopt()") {
  TestCluster test;
  MirroredVersion change = record("org/a", 1, {{1, 2}, {3}});
  change.version.parents = {{"org/a", 7, true, 2, 300}};
  change.version.elsewhere = {"meta/else"};
  change.version.metrics = {{"loss", "0.5"}};
  change.tags = {"best"};
  CHECK(mirror(*test.store, {change}, 10) == std::vector<std::string>{});
  auto snapshot = test.store->snapshot().value();
  CHECK(snapshot->registry_revision() == 10);
  ModelRow model = snapshot->model("org/a").value();
  CHECK(model.latest == 1);
  VersionRow row = snapshot->version(model.id, 1).value();
  CHECK(row.message == "by the registry");
  CHECK(row.publisher == kElsewhere);
  CHECK(row.logical_bytes == 3006);
  CHECK(row.tensors == 3);
  CHECK(row.metrics.size() == 1);
  CHECK(row.elsewhere == std::vector<std::string>{"meta/else"});
  CHECK(row.time_ns == change.version.time_ns);
  CHECK(snapshot->tag(model.id, "best").value().number == 1);
  LocalRow local = snapshot->local(row.id).value();
  CHECK(local.ino_count == 13);
  CHECK(local.view_inos.empty());
  CHECK(snapshot->inode(local.ino_base + 12).value().version == row.id);
  CHECK(snapshot->is_bare(row.id).value());
  CHECK(snapshot->find_blob(content_id(1)).error().code == Errc::not_found);
  CHECK(test.store->open_manifest(row.manifest).error().code == Errc::not_found);
  snapshot.reset();

  REQUIRE(adopt(*test.store, "org/a", 1, {{1, 2}, {3}}).ok());
  snapshot = test.store->snapshot().value();
  CHECK(!snapshot->is_bare(row.id).value());
  CHECK(snapshot->local(row.id).value().view_inos.size() == 3);
  CHECK(snapshot->local(row.id).value().ino_base == local.ino_base);
  CHECK(snapshot->owned_bytes(row.id, 0).value() == 2003);
  CHECK(snapshot->find_blob(content_id(1)).error().code == Errc::absent);
  CHECK(snapshot->some_holders(content_id(3), 1000).value().front() == std::pair<VersionId, std::uint32_t>{row.id, 1});
  CHECK(test.store->counts().value().absent_blobs == 3);
  CHECK(test.store->counts().value().absent_bytes == 3006);
  snapshot.reset();
  CHECK(test.store->open_blob(content_id(1)).error().code == Errc::absent);
  CHECK(test.store->open_manifest(row.manifest).ok());
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}

TEST_CASE("adopt() refuses another version's manifest and one that contradicts the record") {
  TestCluster test;
  MirroredVersion lie = record("m", 2, {{4}});
  lie.version.logical_bytes += 1;
  mirror(*test.store, {record("m", 1, {{1}}), lie}, 1);
  CHECK(adopt(*test.store, "m", 1, {{2}}).error().code == Errc::corrupt);
  CHECK(adopt(*test.store, "m", 2, {{4}}).error().code == Errc::corrupt);
  CHECK(adopt(*test.store, "m", 3, {{4}}).error().code == Errc::not_found);
  CHECK(test.store->snapshot().value()->bare_versions(0, 9).value().size() == 2);
  REQUIRE(adopt(*test.store, "m", 1, {{1}}).ok());
  std::string before = dump(*test.store);
  REQUIRE(adopt(*test.store, "m", 1, {{1}}).ok());  // repeated: no effect
  CHECK(dump(*test.store) == before);
  CHECK(test.store->snapshot().value()->bare_versions(0, 9).value() ==
        std::vector<VersionId>{version_of(*test.store, "m", 2).id});
}

TEST_CASE("changes that come again change nothing, and a second content of a number is named and left out") {
  TestCluster test;
  std::vector<MirrorChange> changes = {record("a", 1, {{1}}), record("a", 2, {{2}}), MirroredTag{"a", "x", 1, 5},
                                       tombstone(record("a", 2, {{2}}), 6)};
  CHECK(mirror(*test.store, changes, 4) == std::vector<std::string>{});
  std::string before = dump(*test.store);
  MirrorOutcome again = test.store->mirror().apply(changes, 4).value();
  CHECK(again.applied == 0);
  CHECK(again.problems.empty());
  CHECK(dump(*test.store) == before);
  std::vector<std::string> problems =
      mirror(*test.store,
             {record("a", 1, {{9}}), record("a/b", 1, {{9}}), record("la/1", 1, {{9}}), record("b", 1, {{3}})}, 5);
  REQUIRE(problems.size() == 3);
  CHECK(problems[0].starts_with("a@1: expected the version "));
  CHECK(problems[1].find("would hide") != std::string::npos);
  CHECK(problems[2].starts_with("la/1@1: \"1\" cannot be part"));
  CHECK(model_of(*test.store, "b").value().latest == 1);
  CHECK(test.store->snapshot().value()->registry_revision() == 5);
}

TEST_CASE("the changes of tags have the authors and times that the registry says") {
  TestCluster test;
  MirroredVersion gone = tombstone(record("a", 2, {{2}}), 70);
  gone.removed_by = {"carol", "n3"};
  MirroredVersion lost = tombstone(record("a", 3, {{3}}), 80);
  lost.version.lost = "lost: a test";
  lost.removed_by = {"", "n4"};
  mirror(
      *test.store,
      {record("a", 1, {{1}}), record("a", 2, {{2}}), record("a", 3, {{3}}), MirroredTag{"a", "x", 1, 5, 1},
       MirroredTag{"a", "x", 2, 20, 2, {"alice", "n1"}}, MirroredTag{"a", "y", 1, 30, 3, {"alice", "n1"}},
       MirroredTag{"a", "y", 0, 40, 4, {"bob", "n2"}}, MirroredTag{"a", "z", 1, 50, 5}, MirroredTag{"a", "z", 0, 0, 6},
       MirroredTag{"a", "w", 3, 60, 7}, gone, lost, MirroredTag{"a", "v", 1, 5, 8, {"alice", "n1"}},
       MirroredTag{"a", "v", 1, 5, 9, {"alice", "n1"}, {}, 0, "alice"}},
      9);
  std::vector<std::string> moves;
  auto snapshot = must(test.store->snapshot());
  for (const TagMove& move : must(snapshot->tag_moves(must(snapshot->model("a")).id)).rows)
    moves.push_back(fmt::format("{} {} {} {} {}@{}", move.name, move.before, move.number, move.time_ns, move.by.user,
                                move.by.node));
  CHECK(must(snapshot->tag(must(snapshot->model("a")).id, "v")).owner == "alice");
  snapshot.reset();
  CHECK(moves == std::vector<std::string>{"v 0 1 5 alice@n1", "w 3 0 80 @n4", "x 2 0 70 carol@n3", "w 0 3 60 @",
                                          "z 1 0 51 @", "z 0 1 50 @", "y 1 0 40 bob@n2", "y 0 1 30 alice@n1",
                                          "x 1 2 20 alice@n1", "x 0 1 5 @"});
  std::string before = dump(*test.store, false);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  test.close();
  CHECK(rebuilt(test.path) == before);
}

TEST_CASE("a version gets another number with its tags and children, and another version its former one") {
  TestCluster test;
  MirroredVersion second = record("a", 2, {{2}});
  MirroredVersion child = record("b", 1, {{3}});
  child.version.parents = {{"a", 2, true, 0, 0, 0}};
  mirror(*test.store, {record("a", 1, {{1}}), second, MirroredTag{"a", "t", 2, 5, 2, {}, second.version.uid}, child},
         3);
  const VersionId id = version_of(*test.store, "a", 2).id;
  const MirroredVersion other = record("a", 2, {{7}});
  const Uuid uid = second.version.uid;
  second.version.number = 4;
  second.former = {2};
  second.returned = 9'000;
  CHECK(mirror(*test.store, {second, other}, 4) == std::vector<std::string>{});
  CHECK(version_of(*test.store, "a", 4).uid == uid);
  CHECK(version_of(*test.store, "a", 4).id == id);
  CHECK(version_of(*test.store, "a", 2).uid == other.version.uid);
  CHECK(version_of(*test.store, "b", 1).parents.at(0).number == 4);
  CHECK(version_of(*test.store, "b", 1).parents.at(0).id == id);
  const ModelRow model = model_of(*test.store, "a").value();
  CHECK(model.latest == 4);
  CHECK(model.next_number == 5);
  CHECK(model.live == 3);
  CHECK(must(must(test.store->snapshot())->tag(model.id, "t")).number == 4);
  CHECK(test.store->mirror().apply(std::vector<MirrorChange>{second, other}, 4).value().applied == 0);
  mirror(*test.store, {tombstone(other, 99)}, 5);  // reaches no other version
  CHECK(version_of(*test.store, "a", 2).removed);
  CHECK_FALSE(version_of(*test.store, "a", 4).removed);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  const std::string after = dump(*test.store, false);
  test.close();
  CHECK(rebuilt(test.path) == after);
}

TEST_CASE("an earlier setting of a tag has no effect, and of two with one stamp the later time counts") {
  TestCluster test;
  mirror(*test.store, {record("a", 1, {{1}}), record("a", 2, {{2}})}, 1);
  const auto set = [&](std::uint64_t number, std::uint64_t time_ns, std::uint64_t revision, std::uint64_t generation) {
    mirror(*test.store, {MirroredTag{"a", "t", number, time_ns, revision, {}, {}, generation}}, revision);
    const auto snapshot = must(test.store->snapshot());
    return must(snapshot->tag(must(snapshot->model("a")).id, "t")).number;
  };
  CHECK(set(1, 50, 7, 1) == 1);
  CHECK(set(2, 90, 6, 1) == 1);
  CHECK(set(2, 40, 7, 1) == 1);
  CHECK(set(2, 60, 7, 1) == 2);
  CHECK(set(1, 10, 3, 2) == 1);  // of a later generation
}

TEST_CASE("a version that comes again with a later description gets its message and metrics") {
  TestCluster test;
  MirroredVersion version = record("a", 1, {{1}});
  mirror(*test.store, {version}, 1);
  version.version.message = "later";
  version.version.metrics = {{"loss", "0.5"}};
  version.version.described_ns = 100;
  CHECK(mirror(*test.store, {version}, 2).empty());
  VersionRow row = version_of(*test.store, "a", 1);
  CHECK(row.message == "later");
  CHECK(row.metrics == Metrics{{"loss", "0.5"}});
  CHECK(row.described_ns == 100);
  CHECK(row.described == row.born + 1);
  version.version.message = "earlier";
  version.version.described_ns = 99;
  CHECK(test.store->mirror().apply(std::vector<MirrorChange>{version}, 3).value().applied == 0);
  CHECK(version_of(*test.store, "a", 1).message == "later");
  version.version.number = 2;  // unknown here, and described before this node received it
  CHECK(mirror(*test.store, {version}, 4).empty());
  std::vector<std::uint64_t> times;
  const CatalogEvents said = test.store->ledger().events(0).value();
  for (const CatalogEvent& event : said.events)
    if (const auto* description = std::get_if<MirroredDescription>(&event)) times.push_back(description->time_ns);
  CHECK(times == std::vector<std::uint64_t>{100, 99});
}

TEST_CASE("of a removal and an undelete the later is true, in any order, and a node keeps the content it has") {
  TestCluster test;
  MirroredVersion version = record("a", 1, {{1}, {2}});
  mirror(*test.store, {version, MirroredTag{"a", "x", 1, 1, 1}}, 1);
  REQUIRE(adopt(*test.store, "a", 1, {{1}, {2}}).ok());
  const VersionRow before = version_of(*test.store, "a", 1);
  const LocalRow local = test.store->snapshot().value()->local(before.id).value();
  MirroredVersion gone = tombstone(version, 500);
  gone.tags = {"x", "y"};
  CHECK(mirror(*test.store, {gone}, 2).empty());
  CHECK(version_of(*test.store, "a", 1).removed_tags == std::vector<std::string>{"x", "y"});
  CHECK(test.store->mirror().apply(std::vector<MirrorChange>{version}, 3).value().applied == 0);  // its publish, again
  version.version.undeleted_ns = 501;
  version.version.message = "described";
  version.version.described_ns = 502;
  CHECK(mirror(*test.store, {version}, 4).empty());
  const VersionRow back = version_of(*test.store, "a", 1);
  CHECK_FALSE(back.removed);
  CHECK(back.undeleted_ns == 501);
  CHECK(back.message == "described");
  CHECK(test.store->snapshot().value()->local(back.id).value().view_inos == local.view_inos);
  CHECK(test.store->mirror().apply(std::vector<MirrorChange>{gone, version}, 5).value().applied == 0);
  CHECK_FALSE(version_of(*test.store, "a", 1).removed);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  std::vector<std::uint64_t> told;
  const CatalogEvents said = test.store->ledger().events(0).value();
  for (const CatalogEvent& event : said.events)
    if (const auto* undelete = std::get_if<MirroredUndelete>(&event)) told.push_back(undelete->time_ns);
  CHECK(told == std::vector<std::uint64_t>{501});

  TestCluster other;  // it hears of all that at once
  mirror(*other.store, {version}, 5);
  CHECK(version_of(*other.store, "a", 1).undeleted_ns == 501);
  CHECK(other.store->mirror().apply(std::vector<MirrorChange>{gone}, 5).value().applied == 0);
  CHECK(mirror(*other.store, {tombstone(version, 600)}, 6).empty());
  CHECK(version_of(*other.store, "a", 1).removed);
}

TEST_CASE("of two removals, and of two undeletes, the later time counts, also after a rebuild") {
  TestCluster test;
  MirroredVersion version = record("a", 1, {{1}, {2}});
  mirror(*test.store, {version}, 1);
  REQUIRE(adopt(*test.store, "a", 1, {{1}, {2}}).ok());
  version.version.undeleted_ns = 501;
  mirror(*test.store, {version}, 2);
  CHECK(version_of(*test.store, "a", 1).undeleted_ns == 501);
  CHECK_FALSE(test.store->snapshot().value()->local(version_of(*test.store, "a", 1).id).value().view_inos.empty());
  CHECK(mirror(*test.store, {tombstone(version, 500)}, 3).empty());  // earlier than the undelete
  CHECK_FALSE(version_of(*test.store, "a", 1).removed);
  mirror(*test.store, {tombstone(version, 600)}, 4);
  MirroredVersion later = tombstone(version, 700);
  later.tags = {"x"};
  mirror(*test.store, {later}, 5);
  CHECK(test.store->mirror().apply(std::vector<MirrorChange>{tombstone(version, 650)}, 6).value().applied == 0);
  const VersionRow row = version_of(*test.store, "a", 1);
  CHECK(row.removed_ns == 700);
  CHECK(row.removed_tags == std::vector<std::string>{"x"});
  version.version.undeleted_ns = 650;
  CHECK(test.store->mirror().apply(std::vector<MirrorChange>{version}, 7).value().applied == 0);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  const std::string before = dump(*test.store, false);
  test.close();
  CHECK(rebuilt(test.path) == before);
}

TEST_CASE("a version whose content gc has freed here comes back bare, with other inode numbers") {
  TestCluster test;
  MirroredVersion version = record("a", 1, {{1}, {2}});
  mirror(*test.store, {version}, 1);
  REQUIRE(adopt(*test.store, "a", 1, {{1}, {2}}).ok());
  const VersionRow row = version_of(*test.store, "a", 1);
  const LocalRow local = test.store->snapshot().value()->local(row.id).value();
  mirror(*test.store, {tombstone(version, 500)}, 2);
  CHECK(test.store->gc({false, 2}, no_progress()).value().versions_reaped == 1);
  CHECK(test.store->mirror().prepare_undelete("a", 1).error().message == "a@1: gc has freed its content");
  mirror(*test.store, {record("b", 1, {{1}, {2}})}, 3);  // its tensors get inodes meanwhile
  REQUIRE(adopt(*test.store, "b", 1, {{1}, {2}}).ok());
  version.version.undeleted_ns = 501;
  CHECK(mirror(*test.store, {version}, 4).empty());
  CHECK(test.store->snapshot().value()->is_bare(row.id).value());
  CHECK(test.store->snapshot().value()->local(row.id).value().ino_base > local.ino_base);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  REQUIRE(adopt(*test.store, "a", 1, {{1}, {2}}).ok());
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  const std::string before = dump(*test.store, false);
  test.close();
  CHECK(rebuilt(test.path) == before);
}

TEST_CASE("a store records a purge of a removed version, once, until the version is live again") {
  TestCluster test;
  MirroredVersion version = record("a", 1, {{1}});
  const MirroredPurge purge{"a", 1, 700, {"ada", "node1"}, version.version.uid};
  const auto purged = [&] { return test.store->snapshot().value()->purged().value(); };
  mirror(*test.store, {version, purge}, 1);
  CHECK(purged().empty());  // it is live
  MirroredPurge other = purge;
  other.uid = record("b", 1, {{2}}).version.uid;
  mirror(*test.store, {tombstone(version, 500), other}, 2);
  CHECK(purged().empty());
  CHECK(test.store->mirror().apply(std::vector<MirrorChange>{purge}, 3).value().applied == 1);
  CHECK(test.store->mirror().apply(std::vector<MirrorChange>{purge}, 4).value().applied == 0);
  REQUIRE(purged().size() == 1);
  CHECK(purged()[0].second == 700);
  CHECK(test.store->gc({false, 4}, no_progress()).value().versions_reaped <= 1);
  CHECK(purged().size() == 1);
  Commit last;
  for (const Commit& commit : test.store->commits(0).value().commits) last = commit;
  CHECK(last.kind == Commit::Kind::purge);
  CHECK(last.by == purge.by);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  test.close();
  CHECK(Store::rebuild(test.path, decode, no_progress()).value().problems == std::vector<std::string>{});
  test.open();
  CHECK(purged().size() == 1);
  version.version.undeleted_ns = 800;
  mirror(*test.store, {version}, 5);
  CHECK(purged().empty());
}

TEST_CASE("a bare version that is removed and undeleted is bare again") {
  TestCluster test;
  MirroredVersion version = record("a", 1, {{1}});
  mirror(*test.store, {version, tombstone(version, 500)}, 1);
  version.version.undeleted_ns = 501;
  CHECK(mirror(*test.store, {version}, 2).empty());
  const VersionRow row = version_of(*test.store, "a", 1);
  CHECK(test.store->snapshot().value()->is_bare(row.id).value());
  REQUIRE(adopt(*test.store, "a", 1, {{1}}).ok());
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}

TEST_CASE("a tombstone has the last message and metrics, also of a node that missed the change and the removal") {
  TestCluster test;
  MirroredVersion version = record("a", 1, {{1}});
  mirror(*test.store, {version}, 1);
  version.version.message = "later";
  version.version.metrics = {{"loss", "0.5"}};
  version.version.described_ns = 100;
  CHECK(mirror(*test.store, {tombstone(version, 200)}, 2).empty());
  const VersionRow row = version_of(*test.store, "a", 1);
  CHECK(row.removed);
  CHECK(row.removed_ns == 200);
  CHECK(row.message == "later");
  CHECK(row.metrics == Metrics{{"loss", "0.5"}});
  CHECK(row.described_ns == 100);
  const std::string before = dump(*test.store, false);
  test.close();
  CHECK(rebuilt(test.path) == before);
}

TEST_CASE("a hostile record is refused by name and stops nothing") {
  TestCluster test;
  MirroredVersion zero = record("a", 0, {{1}});
  MirroredVersion late = record("a", 1ULL << 40U, {{1}});
  MirroredVersion nobody = record("a", 1, {{1}});
  nobody.version.publisher = "me";
  MirroredVersion wide = record("a", 1, {{1}});
  wide.tree_nodes = UINT64_MAX;
  MirroredVersion nothing = record("a", 1, {{1}});
  nothing.tree_nodes = 0;
  MirroredVersion chatty = record("a", 1, {{1}});
  chatty.version.message.assign(1U << 20U, 'x');
  MirroredVersion tagged = record("a", 1, {{1}});
  tagged.tags = {"latest"};
  MirroredVersion timeless = record("a", 1, {{1}});
  timeless.version.undeleted_ns = UINT64_MAX;
  std::vector<MirrorChange> changes = {zero, late, nobody, wide, nothing, chatty, tagged, timeless};
  changes.emplace_back(tombstone(record("a", 1, {{1}}), UINT64_MAX));
  changes.emplace_back(MirroredTag{"", "x", 1, 0});
  changes.emplace_back(MirroredTag{std::string(1000, 'm'), "x", 1, 0});
  changes.emplace_back(MirroredMemory{"", 1, true});
  CHECK(mirror(*test.store, changes, 3).size() == changes.size());
  CHECK(test.store->snapshot().value()->models().value().rows.empty());
  CHECK(mirror(*test.store, {record("a", 1, {{1}})}, 4).empty());
}

TEST_CASE("earlier removed versions are known by name, and unknown numbers are ignored") {
  TestCluster test;
  MirroredVersion gone = tombstone(record("m", 2, {{2}}), 77);
  gone.tree_nodes = 0;
  MirroredVersion child = record("m", 3, {{3}});
  child.version.parents = {{"m", 2, true, 0, 0}};
  CHECK(mirror(*test.store, {gone, child, MirroredMemory{"m", 9, true}, MirroredMemory{"x", 9, true}}, 9).empty());
  VersionRow row = version_of(*test.store, "m", 2);
  CHECK(row.removed);
  CHECK(row.removed_ns == 77);
  CHECK(row.died == row.born + 1);
  CHECK(version_of(*test.store, "m", 3).parents[0].id == row.id);
  auto snapshot = test.store->snapshot().value();
  CHECK(snapshot->versions(row.model).value().rows.size() == 2);
  CHECK(snapshot->local(row.id).error().code == Errc::not_found);
  CHECK(snapshot->model(row.model).value().latest == 3);
  snapshot.reset();
  // A number that is mirrored late still gets its place.
  CHECK(mirror(*test.store, {record("m", 1, {{1}})}, 10).empty());
  CHECK(version_of(*test.store, "m", 1).message == "by the registry");
  CHECK(model_of(*test.store, "m").value().latest == 3);
  std::string before = dump(*test.store, false);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  test.close();
  CHECK(rebuilt(test.path) == before);
}

TEST_CASE("a tombstone does not change the kind of a name that has live versions") {
  TestCluster test;
  MirroredVersion live = record("d", 1, {{1}});
  live.version.kind = VersionKind::dataset;
  const MirroredVersion gone = tombstone(record("d", 2, {{2}}), 77);  // its kind is unknown, so that of a model
  CHECK(mirror(*test.store, {live, gone}, 1).empty());
  const ModelRow row = model_of(*test.store, "d").value();
  CHECK(row.kind == VersionKind::dataset);
  CHECK(row.latest == 1);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  mirror(*test.store, {tombstone(live, 80), record("d", 3, {{3}})}, 2);
  CHECK(model_of(*test.store, "d").value().kind == VersionKind::model);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}

TEST_CASE("the earliest version owns shared bytes, in any order of adoption") {
  TestCluster test;
  mirror(*test.store, {record("a", 1, {{1, 2}}), record("a", 2, {{2, 3}}), record("a", 3, {{3}, {2}})}, 1);
  auto owned = [&](std::uint64_t number, std::uint32_t file) {
    return test.store->snapshot().value()->owned_bytes(version_of(*test.store, "a", number).id, file).value();
  };
  REQUIRE(adopt(*test.store, "a", 3, {{3}, {2}}).ok());
  CHECK(owned(3, 0) == 1003);
  CHECK(owned(3, 1) == 1002);
  REQUIRE(adopt(*test.store, "a", 1, {{1, 2}}).ok());
  CHECK(owned(3, 0) == 1003);
  CHECK(owned(3, 1) == 0);
  CHECK(owned(1, 0) == 2003);
  REQUIRE(adopt(*test.store, "a", 2, {{2, 3}}).ok());
  CHECK(owned(3, 0) == 0);
  CHECK(owned(2, 0) == 1003);
  CHECK(owned(1, 0) == 2003);
  std::string before = dump(*test.store, false);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  mirror(*test.store, {tombstone(record("a", 1, {{1, 2}}), 5)}, 2);
  CHECK(owned(2, 0) == 2005);
  // The last version that needs an absent blob removes its row.
  mirror(*test.store, {tombstone(record("a", 2, {{2, 3}}), 5), tombstone(record("a", 3, {{3}, {2}}), 5)}, 3);
  CHECK(test.store->snapshot().value()->find_blob(content_id(2)).error().code == Errc::not_found);
  CHECK(test.store->counts().value().blobs == 0);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}

TEST_CASE("a deleted index of a mirror comes back as it was") {
  TestCluster test;
  MirroredVersion own = record("org/own", 1, {{5}, {6}});
  own.version.publisher = kHere;
  mirror(*test.store, {record("a", 1, {{1, 2}}), record("a", 2, {{2, 3}}), own, MirroredTag{"a", "x", 2, 9}}, 3);
  mirror(*test.store, {record("b", 1, {{1}}), record("b", 2, {{8}})}, 4);
  REQUIRE(adopt(*test.store, "b", 1, {{1}}).ok());
  REQUIRE(adopt(*test.store, "a", 1, {{1, 2}}).ok());
  REQUIRE(adopt(*test.store, "org/own", 1, {{5}, {6}}).ok());
  REQUIRE(test.store->pin("a", 1, true).ok());
  REQUIRE(test.store->pin("a", 2, true).ok());
  REQUIRE(test.store->pin("b", 1, true).ok());
  REQUIRE(test.store->pin("a", 2, false).ok());
  mirror(*test.store, {tombstone(record("b", 1, {{1}}), 5), tombstone(record("b", 2, {{8}}), 5)}, 5);
  std::string before = dump(*test.store, false);
  CHECK(before.find("pinned [1] unsaved [3] bare [2]") != std::string::npos);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  test.close();
  std::filesystem::remove_all(test.path + "/index");
  CHECK(rebuilt(test.path) == before);
  CHECK(rebuilt(test.path) == before);
  test.open();
  CHECK(test.store->snapshot().value()->registry_revision() == 5);
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  // Adoption continues after the rebuild.
  REQUIRE(adopt(*test.store, "a", 2, {{2, 3}}).ok());
  REQUIRE(test.store->ledger().saved(std::vector<VersionId>{3}).ok());
  CHECK(test.store->snapshot().value()->unsaved(0, 9).value().empty());
  CHECK(fsck(*test.store) == std::vector<std::string>{});
}

TEST_CASE("a batch that was cut off leaves a revision before it") {
  for (bool journaled : {false, true}) {
    CAPTURE(journaled);
    TestCluster test;
    mirror(*test.store, {record("a", 1, {{1}})}, 3);
    test.close();
    CommitHooks hooks;
    (journaled ? hooks.after_journal : hooks.before_journal) = [] { ::_exit(0); };
    CHECK(exited(in_child([&] {
      auto store = StoreImpl::open_as_daemon(test.path, write_options(), hooks).value();
      std::vector<MirrorChange> changes = {record("a", 2, {{2}}), record("a", 3, {{3}}),
                                           tombstone(record("a", 1, {{1}}), 4)};
      return store->mirror().apply(changes, 7).ok();
    })));
    test.open();
    // The next writer truncates a record that no mark covers. The registry then resends the changes.
    CHECK(test.store->gc({false, 3}, no_progress()).error().code == Errc::busy);
    auto snapshot = test.store->snapshot().value();
    CHECK(snapshot->registry_revision() == 3);
    CHECK(snapshot->model("a").value().latest == 1);
    CHECK_FALSE(snapshot->version(1, 1).value().removed);
  }
  // A part of a batch's records is not the batch: only the last record carries the revision.
  TestCluster test;
  mirror(*test.store, {record("a", 1, {{1}})}, 3);
  std::uint64_t begin = test.store->snapshot().value()->journal_end();
  mirror(*test.store, {record("a", 2, {{2}}), record("a", 3, {{3}})}, 7);
  CHECK(test.store->commits(begin).value().commits.size() == 2);
}

// Acts as if the machine stopped right after a commit became visible. `left` returns what remains of the .log. The copy
// has none of the new records, and the mark is the old one.
void stop_machine(const std::string& path, const std::vector<MirrorChange>& changes, std::uint64_t revision,
                  const std::function<std::string(const std::string& before, const std::string& after)>& left) {
  const std::string log = path + "/journal/0000000000000001.log";
  const std::string copy = path + "/journal/0000000000000001.copy";
  const std::string log_before = read_text(log), copy_before = read_text(copy);
  CommitHooks hooks;
  hooks.after_commit = [] { ::_exit(0); };
  CHECK(exited(in_child([&] {
    return StoreImpl::open_as_daemon(path, write_options(), hooks).value()->mirror().apply(changes, revision).ok();
  })));
  CHECK(read_text(copy) == copy_before);  // the commit became visible before
  const std::string text = left(log_before, read_text(log));
  write_file(log, text);
}

TEST_CASE("changes that a mirror has shown survive its death before the sync") {
  TestCluster test;
  mirror(*test.store, {record("a", 1, {{1}})}, 3);
  test.close();
  const std::vector<MirrorChange> changes = {record("a", 2, {{2}}), record("a", 3, {{3}}),
                                             tombstone(record("a", 1, {{1}}), 4)};
  stop_machine(test.path, changes, 7, [](const std::string&, const std::string& after) { return after; });
  const std::string shown = dump(*Store::open(test.path, {}).value());
  CHECK(fsck(*Store::open(test.path, {}).value()) == std::vector<std::string>{});
  test.open();
  CHECK(dump(*test.store) == shown);
  CHECK(test.store->snapshot().value()->registry_revision() == 7);
  CHECK(Journal(safe(test.path)).mark().value()->journal_end == test.store->snapshot().value()->journal_end());
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  const std::string before = dump(*test.store, false);
  test.close();
  CHECK(rebuilt(test.path) == before);
}

TEST_CASE("an index that is ahead of its journal is rebuilt, and the registry sends the changes again") {
  const std::vector<MirrorChange> changes = {record("a", 2, {{2}}), record("a", 3, {{3}}),
                                             tombstone(record("a", 1, {{1}}), 4)};
  using Left = std::function<std::string(const std::string&, const std::string&)>;
  const Left lefts[] = {
      [](const std::string& before, const std::string&) { return before; },
      [](const std::string& before, const std::string& after) { return after.substr(0, before.size() + 30); },
      [](const std::string&, const std::string& after) { return after.substr(0, after.size() - 1); },
      // The first page of the new records is lost, their end is not.
      [](const std::string& before, const std::string& after) {
        return before + std::string(50, '\0') + after.substr(before.size() + 50);
      }};
  for (std::size_t i = 0; i < std::size(lefts); ++i) {
    CAPTURE(i);
    TestCluster test;
    mirror(*test.store, {record("a", 1, {{1}})}, 3);
    const std::string before = dump(*test.store, false);
    test.close();
    stop_machine(test.path, changes, 7, lefts[i]);
    const auto told = fsck(*Store::open(test.path, {}).value());
    REQUIRE(!told.empty());
    CHECK(told[0].find("weftd makes it anew when it starts") != std::string::npos);
    test.open();
    if (i != 2) CHECK(dump(*test.store, false) == before);  // else two of the three records are intact
    CHECK(test.store->snapshot().value()->registry_revision() == 3);
    CHECK(fsck(*test.store) == std::vector<std::string>{});
    CHECK(mirror(*test.store, changes, 7).empty());
    CHECK(model_of(*test.store, "a").value().latest == 3);
    CHECK(fsck(*test.store) == std::vector<std::string>{});
  }
}

TEST_CASE("an older revision is kept when the registry is another") {
  TestCluster test;
  mirror(*test.store, {record("a", 1, {{1}})}, 30);
  CHECK(mirror(*test.store, {}, 2).empty());
  CHECK(test.store->snapshot().value()->registry_revision() == 2);
  mirror(*test.store, {record("a", 2, {{1}})}, 1);
  CHECK(test.store->snapshot().value()->registry_revision() == 1);
}

TEST_CASE("a store that belongs to a cluster is its daemon's") {
  TestCluster test;
  // Another writer gets an error that names the holder.
  auto second = Store::open(test.path, write_options());
  REQUIRE(second.error().code == Errc::busy);
  CHECK(second.error().message.find("a daemon runs on it") != std::string::npos);
  CHECK(Store::rebuild(test.path, decode, no_progress()).error().code == Errc::busy);
  CHECK(Store::open(test.path, {}).ok());
  CHECK(test.store->set_tag("a", "x", 1).error().code == Errc::read_only);
  CHECK(test.store->remove_version("a", 1).error().code == Errc::read_only);
  CHECK(publish(*test.store, "a", {{1}}).error().code == Errc::read_only);
  CHECK(test.store->mirror().join({"other", std::string(kHere)}).error().code == Errc::exists);
  CHECK(test.store->mirror().join({"test", std::string(kElsewhere)}).error().code == Errc::exists);
  CHECK(test.store->mirror().join({"test", std::string(kHere)}).ok());
  test.close();
  second = Store::open(test.path, write_options());
  REQUIRE(second.error().code == Errc::read_only);
  CHECK(second.error().message.find("belongs to cluster test") != std::string::npos);
  CHECK(Store::rebuild(test.path, decode, no_progress()).ok());
}

TEST_CASE("a daemon waits for a library that writes, and says so") {
  TestStore test;
  auto library = open_store(test.path);
  std::string told;
  OpenOptions options = write_options();
  options.patience.waiting = [&](std::string_view holder) { told = holder; };
  options.patience.cancelled = [&] { return !told.empty(); };
  CHECK(StoreImpl::open_as_daemon(test.path, options).error().code == Errc::cancelled);
  CHECK(told.find("daemon.lock, which another process holds") != std::string::npos);
  CHECK(open_store(test.path));  // two libraries may be open at once
  library.reset();
  auto daemon = StoreImpl::open_as_daemon(test.path, write_options()).value();
  CHECK(!daemon->cluster());
  CHECK(daemon->mirror().apply({}, 1).error().code == Errc::invalid);
  CHECK(must_publish(*daemon, "a", {{1}}).made);  // the daemon itself may still publish
  CHECK(daemon->mirror().join({"test", std::string(kHere)}).error().code == Errc::unsupported);
}

// An absent blob without holders has no row, so that the next version numbers it again.
TEST_CASE("a dead blob may have another number in a rebuild that skips the last version that had it") {
  TestCluster test;
  const MirroredVersion open = record("a", 1, {{1}});
  const MirroredVersion reaped = record("a", 2, {{1}, {2}});
  mirror(*test.store, {open}, 1);
  REQUIRE(adopt(*test.store, "a", 1, {{1}}).ok());
  const VersionHold hold = must(test.store->hold_version(version_of(*test.store, "a", 1).id));
  mirror(*test.store, {tombstone(open, 500), reaped}, 2);
  REQUIRE(adopt(*test.store, "a", 2, {{1}, {2}}).ok());
  fetch(*test.store, {1});
  mirror(*test.store, {tombstone(reaped, 501)}, 3);
  const GcReport gc = must(test.store->gc({false, 3}, no_progress()));
  CHECK(gc.versions_reaped == 1);
  CHECK(gc.versions_open == 1);
  CHECK(reads_well(*test.store, 1));
  CHECK(fsck(*test.store) == std::vector<std::string>{});

  mirror(*test.store, {record("a", 3, {{3}, {1}})}, 4);
  REQUIRE(adopt(*test.store, "a", 3, {{3}, {1}}).ok());
  CHECK(fsck(*test.store) == std::vector<std::string>{});
  const std::string before = dump(*test.store, false);
  test.close();
  CHECK(rebuilt(test.path) == before);
}
