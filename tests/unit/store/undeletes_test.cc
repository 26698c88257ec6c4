#include "store/publishing/undeletes.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <variant>

#include "cluster_parts.h"
#include "store/checking/checking.h"
#include "store/collecting/collector.h"
#include "store/publishing/memory_versions.h"
#include "store/publishing/publisher.h"

using namespace weft;
using namespace weft::testing;

namespace {

void remove(StoreParts& parts, std::string_view model, std::uint64_t number) {
  const VersionName name{std::string(model), number};
  must(remove_versions(parts, {&name, 1}, Tagged::removed));
}

// A refused undelete commits nothing.
Errc refusal(StoreParts& parts, std::string_view model, std::uint64_t number, std::string_view why) {
  const std::uint64_t before = must(parts.index.journal_end());
  const auto undeleted = undelete(parts, model, number, {});
  REQUIRE_FALSE(undeleted.ok());
  CAPTURE(undeleted.error().message);
  CHECK(undeleted.error().message.find(why) != std::string::npos);
  CHECK(must(parts.index.journal_end()) == before);
  return undeleted.error().code;
}

void note_in_memory(StoreParts& parts, const VersionRow& version) {
  const WriterLock lock = must(parts.index.lock());
  must(parts.index.commit(lock, [&](Txn& txn) { return set_note(txn, version, VersionNote::in_memory, true); }));
}

// The removed version d@1 of this node has two contents: 1 in the cached pack `pack`, and 3 at another node, where the
// live version a@1 holds it.
struct Room : ClusterParts {
  Room() {
    deliver(record("a", 1, {{1}, {3}}));
    adopt("a", 1, {{1}, {3}});
    own = deliver_own("d", 1, {{1, 3}});
    pack = fetch(1);
    deliver(tombstone(own, 500));
  }
  bool is_open() const { return must(parts->open_versions->is_open(version("d", 1).id)); }

  MirroredVersion own;
  PackId pack = 0;
};

}  // namespace

TEST_CASE("the refusal of an undelete says why, and changes nothing") {
  TestParts test;
  must(publish(*test.parts, "m", {{1}}));
  must(publish(*test.parts, "m", {{2}}));
  CHECK(refusal(*test.parts, "m", 1, "m@1: it is not removed") == Errc::exists);
  CHECK(refusal(*test.parts, "m", 9, "m@9: there was no such version") == Errc::not_found);
  CHECK(refusal(*test.parts, "n", 1, "no model n") == Errc::not_found);
  remove(*test.parts, "m", 1);
  must(gc(*test.parts, {}, no_progress()));
  CHECK(refusal(*test.parts, "m", 1, "m@1: gc has freed its content") == Errc::absent);
  must(StoreMemory(*test.parts).lose_version("m", 2, "lost: it was in memory"));
  CHECK(refusal(*test.parts, "m", 2, "lost: it was in memory") == Errc::absent);
  must(publish(*test.parts, "m", {{3}}));
  remove(*test.parts, "m", 3);
  for (const auto& file : std::filesystem::directory_iterator(test.made.path + "/packs"))
    std::filesystem::remove(file.path());
  CHECK(refusal(*test.parts, "m", 3, "m@3: bytes of it are lost") == Errc::absent);
}

TEST_CASE("each kind of store has an undelete of its own") {
  TestParts alone;
  CHECK(prepare_undelete(*alone.parts, "m", 1).error().code == Errc::invalid);
  Room room;
  CHECK(undelete(*room.parts, "d", 1, {}).error().code == Errc::read_only);
}

TEST_CASE("an undelete and the tags that lead to no other version are one commit") {
  TestParts test;
  must(publish(*test.parts, "m", {{1}}, {{}, {"a", "b"}}));
  must(publish(*test.parts, "m", {{2}}));
  remove(*test.parts, "m", 1);
  const VersionId id = test.version("m", 1).id;
  CHECK(test.has_note(kUnreaped, id));
  must(set_tag(*test.parts, "m", "b", 2));
  const std::uint64_t begin = must(test.parts->index.journal_end());
  const UndeletedVersion done = must(undelete(*test.parts, "m", 1, {"alice", {}}));
  CHECK(done.tags == std::vector<std::string>{"a"});
  REQUIRE(done.moved.size() == 1);
  CHECK(done.moved[0].name == "b");
  CHECK_FALSE(test.version("m", 1).removed);
  CHECK_FALSE(test.has_note(kUnreaped, id));
  const JournalTail tail = must(test.parts->index.some_events(begin, must(test.parts->index.journal_end())));
  REQUIRE(tail.events.size() == 2);
  CHECK(std::holds_alternative<UndeleteEvent>(tail.events[0].event));
  const auto* tags = std::get_if<TagsEvent>(&tail.events[1].event);
  REQUIRE(tags != nullptr);
  CHECK(tags->changes.size() == 1);
  CHECK(tags->by == Author{"alice", {}});
}

TEST_CASE("a version whose parent is in memory is in memory again, until the parent is on the disk") {
  TestParts test;
  must(publish(*test.parts, "p", {{1}}));
  note_in_memory(*test.parts, test.version("p", 1));
  must(publish(*test.parts, "m", {{2}}, {{{"p", 1}}, {}}));
  const VersionId id = test.version("m", 1).id;
  CHECK(test.has_note(kInMemory, id));
  remove(*test.parts, "m", 1);
  CHECK_FALSE(test.has_note(kInMemory, id));
  must(undelete(*test.parts, "m", 1, {}));
  CHECK(test.has_note(kInMemory, id));
  remove(*test.parts, "m", 1);
  must(StoreMemory(*test.parts).keep_version("p", 1));
  must(undelete(*test.parts, "m", 1, {}));
  CHECK_FALSE(test.has_note(kInMemory, id));
}

TEST_CASE("a prepared undelete holds the version and its packs, and gives them up unless it is kept") {
  Room room;
  const VersionId id = room.version("d", 1).id;
  CHECK(prepare_undelete(*room.parts, "a", 1).error().code == Errc::exists);
  {
    const auto prepared = must(prepare_undelete(*room.parts, "d", 1));
    CHECK(prepared->relies_on() == std::vector<VersionName>{{"a", 1}});
    CHECK_FALSE(prepared->in_memory());
    CHECK(room.is_open());
    CHECK(room.has_note(kPromoted, room.pack));
    CHECK(must(gc(*room.parts, {false, room.revision}, no_progress())).versions_open == 1);
  }
  CHECK_FALSE(room.is_open());
  CHECK(room.has_note(kCached, room.pack));
  CHECK(room.parts->reliances.packs().empty());

  auto prepared = must(prepare_undelete(*room.parts, "d", 1));
  room.own.version.undeleted_ns = 501;
  room.deliver(room.own);
  prepared->keep();
  prepared.reset();
  CHECK(must(gc(*room.parts, {false, room.revision}, no_progress())).versions_reaped == 0);
  CHECK(room.has_note(kPromoted, room.pack));
  CHECK(room.has_note(kUnsaved, id));
  CHECK_FALSE(room.version("d", 1).removed);
  CHECK(must(fsck(*room.parts, {}, decode, no_progress())).problems.empty());
}

TEST_CASE("a prepared undelete is refused once another node has removed the last holder of its content") {
  Room room;
  room.deliver(tombstone(record("a", 1, {{1}, {3}}), 600));
  CHECK(prepare_undelete(*room.parts, "d", 1).error().code == Errc::absent);
  CHECK_FALSE(room.is_open());
  CHECK(room.has_note(kCached, room.pack));
  CHECK(room.parts->reliances.packs().empty());
}
