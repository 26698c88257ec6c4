// The history of commits, and the notification of new ones.
#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>

#include "base/limits.h"
#include "catalog/journal.h"
#include "parts_support.h"
#include "store/publishing/memory_versions.h"
#include "store/publishing/publisher.h"
#include "store/publishing/undeletes.h"
#include "store/reading/queries.h"
#include "weft/store/fsck.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Kind = Commit::Kind;

struct Room : TestParts {
  std::uint64_t end() const { return must(parts->index.journal_end()); }
  CommitBatch read(std::uint64_t from) const { return must(commits_from(*parts, from)); }
  Errc refusal(std::uint64_t from) const { return commits_from(*parts, from).error().code; }
  void commit(const MakeEvents& make) const {
    const WriterLock lock = must(parts->index.lock());
    must(parts->index.commit(lock, make));
  }
  void remove(std::string_view model, std::uint64_t number) const {
    const VersionName name{std::string(model), number};
    must(remove_versions(*parts, {&name, 1}, Tagged::removed));
  }
  // Damages a byte of both copies of the journal.
  void damage(std::uint64_t at) const {
    flip("log", at);
    flip("copy", kMarksBytes + at);
  }

 private:
  void flip(const std::string& copy, std::uint64_t at) const {
    const std::string file = made.path + "/journal/0000000000000001." + copy;
    std::string bytes = read_text(file);
    bytes.at(at) = static_cast<char>(bytes.at(at) ^ 1);
    write_file(file, bytes);
  }
};

}  // namespace

TEST_CASE("the history tells of publishes, tags and removals, and not of pins") {
  Room room;
  const std::uint64_t begin = room.end();
  must(publish(*room.parts, "m", {{1, 2}}, {{}, {"best"}}));
  const std::uint64_t first = room.end();
  must(publish(*room.parts, "m", {{2, 3}}));
  must(set_tag(*room.parts, "m", "best", 2));
  REQUIRE(set_tag(*room.parts, "m", "other", std::nullopt).error().code == Errc::not_found);
  must(set_tag(*room.parts, "m", "best", std::nullopt));
  must(pin(*room.parts, "m", 2, true));
  must(set_tag(*room.parts, "m", "late", 2));
  room.remove("m", 2);
  const std::uint64_t end = room.end();

  const CommitBatch batch = room.read(begin);
  CHECK(batch.next == end);
  const auto& commits = batch.commits;
  REQUIRE(commits.size() == 6);
  CHECK(std::ranges::all_of(commits, [](const Commit& commit) { return commit.model == "m" && commit.time_ns != 0; }));
  CHECK(commits[0].kind == Kind::publish);
  CHECK(commits[0].number == 1);
  CHECK(commits[0].bytes == 1001 + 1002);
  CHECK(commits[0].tags == std::vector<Commit::Tag>{{"best", 1}});
  CHECK(commits[0].position == first);
  CHECK(commits[1].number == 2);
  CHECK(commits[1].tags.empty());
  CHECK(commits[2].kind == Kind::tags);
  CHECK(commits[2].tags == std::vector<Commit::Tag>{{"best", 2}});
  CHECK(commits[3].tags == std::vector<Commit::Tag>{{"best", 0}});
  CHECK(commits[5].kind == Kind::removal);
  CHECK(commits[5].number == 2);
  CHECK(commits[5].tags == std::vector<Commit::Tag>{{"late", 0}});

  CHECK(room.read(end).commits.empty());
  CHECK(room.read(end).next == end);
  CHECK(room.read(first).commits.size() == 5);
  CHECK(room.read(commits[2].position).commits.size() == 3);
}

TEST_CASE("the history tells of memory, descriptions, undeletes, renames and losses") {
  Room room;
  StoreMemory memory(*room.parts);
  must(publish(*room.parts, "m", {{1}}));
  must(publish(*room.parts, "n", {{2}}));
  const std::uint64_t begin = room.end();
  const VersionRow version = room.version("m", 1);
  room.commit([&](Txn& txn) { return set_note(txn, version, VersionNote::in_memory, true); });
  must(memory.keep_version("m", 1));
  DescriptionChange change;
  change.message = "described";
  must(describe(*room.parts, "m", 1, change));
  room.remove("m", 1);
  must(undelete(*room.parts, "m", 1, {}));
  must(rename_model(*room.parts, "m", "k"));
  must(memory.lose_version("n", 1, "lost: a test"));

  std::vector<std::tuple<Kind, std::string, std::uint64_t>> seen;
  const CommitBatch batch = room.read(begin);
  for (const Commit& commit : batch.commits) seen.emplace_back(commit.kind, commit.model, commit.number);
  CHECK(seen == decltype(seen){{Kind::in_memory, "m", 1},
                               {Kind::on_disk, "m", 1},
                               {Kind::description, "m", 1},
                               {Kind::removal, "m", 1},
                               {Kind::undelete, "m", 1},
                               {Kind::rename, "m", 0},
                               {Kind::removal, "n", 1}});
  CHECK(batch.commits.at(5).to == "k");
  CHECK(batch.commits.at(3).lost.empty());
  CHECK(batch.commits.at(6).lost == "lost: a test");
}

TEST_CASE("a long history is read in parts") {
  Room room;
  const std::string message(limits::kMessageMax, 'x');
  for (unsigned i = 1; i <= 80; ++i) must(publish(*room.parts, "m", {{i}}, {{}, {}, {}, message}));
  std::size_t commits = 0, parts = 0;
  for (std::uint64_t at = 0; at < room.end(); ++parts) {
    const CommitBatch batch = room.read(at);
    REQUIRE(batch.next > at);
    commits += batch.commits.size();
    at = batch.next;
  }
  CHECK(commits == 80);
  CHECK(parts > 1);
}

TEST_CASE("a history is refused from positions outside the journal or between records, and past damage") {
  Room room;
  must(publish(*room.parts, "m", {{1, 2}}));
  const std::uint64_t first = room.end();
  must(publish(*room.parts, "m", {{3}}));
  const std::uint64_t end = room.end();
  CHECK(room.refusal(end + 1) == Errc::invalid);
  CHECK(room.refusal(end - 1) == Errc::invalid);
  CHECK(room.refusal(1) == Errc::invalid);
  room.damage(20);
  CHECK(room.refusal(0) == Errc::invalid);
  CHECK(room.read(first).commits.size() == 1);
  room.damage(first + 20);
  CHECK(room.refusal(first) == Errc::invalid);
}

TEST_CASE("a history is refused across a repair of the journal, and continues after it") {
  Room room;
  must(publish(*room.parts, "m", {{1}}));
  const std::uint64_t first = room.end();
  room.commit([](Txn&) -> Result<Events> { return Events{RepairEvent{}}; });
  const std::uint64_t repaired = room.end();
  must(publish(*room.parts, "m", {{2}}));
  CHECK(room.refusal(0) == Errc::invalid);
  CHECK(room.refusal(first) == Errc::invalid);
  REQUIRE(room.read(repaired).commits.size() == 1);
  CHECK(room.read(repaired).commits[0].number == 2);
}

TEST_CASE("a watch hears of commits by other processes, and of a new index") {
  Room room;
  const auto watch = must(watch_commits(*room.parts));
  CHECK_FALSE(readable(*watch));
  const int status = in_child([&] {
    const auto other = must(StoreParts::open(safe(room.made.path), write_options()));
    return publish(*other, "m", {{1, 2}}).ok();
  });
  REQUIRE(exited(status));
  CHECK(readable(*watch));
  watch->clear();
  CHECK_FALSE(readable(*watch));
  CHECK(must(open_snapshot(*room.parts))->sequence() == 1);
  REQUIRE(Store::rebuild(room.made.path, decode, no_progress()).ok());
  CHECK(readable(*watch));
}
