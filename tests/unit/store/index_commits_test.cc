// The history of commits, and the notification of new ones.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/limits.h"
#include "index_support.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Kind = Commit::Kind;

std::uint64_t end_of(Store& store) {
  return store.snapshot().value()->journal_end();
}

CommitBatch must_read(Store& store, std::uint64_t from) {
  return store.commits(from).value();
}

}  // namespace

TEST_CASE("the history tells of publishes, tags and removals") {
  TestStore test;
  auto store = open_store(test.path);
  const std::uint64_t begin = end_of(*store);
  must_publish(*store, "m", {{1, 2}}, {{}, {"best"}});
  const std::uint64_t first = end_of(*store);
  must_publish(*store, "m", {{2, 3}});
  REQUIRE(store->set_tag("m", "best", 2).ok());
  REQUIRE(store->set_tag("m", "other", std::nullopt).error().code == Errc::not_found);
  REQUIRE(store->set_tag("m", "best", std::nullopt).ok());
  REQUIRE(store->pin("m", 2, true).ok());
  REQUIRE(store->set_tag("m", "late", 2).ok());
  REQUIRE(store->remove_version("m", 2).ok());
  const std::uint64_t end = end_of(*store);

  const CommitBatch batch = must_read(*store, begin);
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

  CHECK(must_read(*store, end).commits.empty());
  CHECK(must_read(*store, end).next == end);
  CHECK(must_read(*store, first).commits.size() == 5);
  CHECK(must_read(*store, commits[2].position).commits.size() == 3);
}

TEST_CASE("a long history is read in parts") {
  TestStore test;
  auto store = open_store(test.path);
  const std::string message(limits::kMessageMax, 'x');
  for (unsigned i = 1; i <= 80; ++i) REQUIRE(publish(*store, "m", {{i}}, {{}, {}, {}, message}).ok());
  std::size_t commits = 0, parts = 0;
  for (std::uint64_t at = 0; at < end_of(*store); ++parts) {
    const CommitBatch batch = must_read(*store, at);
    REQUIRE(batch.next > at);
    commits += batch.commits.size();
    at = batch.next;
  }
  CHECK(commits == 80);
  CHECK(parts > 1);
}

TEST_CASE("commits() refuses positions outside the journal") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1, 2}});
  const std::uint64_t end = end_of(*store);
  CHECK(store->commits(end + 1).error().code == Errc::invalid);
  CHECK(store->commits(end - 1).error().code == Errc::invalid);
  CHECK(store->commits(1).error().code == Errc::invalid);
}

TEST_CASE("a watch hears of commits by other processes, and of a new index") {
  TestStore test;
  auto store = open_store(test.path);
  const auto watch = store->watch_commits().value();
  CHECK_FALSE(readable(*watch));
  const int status = in_child([&] {
    auto other = open_store(test.path);
    return publish(*other, "m", {{1, 2}}).ok();
  });
  REQUIRE(exited(status));
  CHECK(readable(*watch));
  watch->clear();
  CHECK_FALSE(readable(*watch));
  CHECK(store->snapshot().value()->sequence() == 1);
  REQUIRE(Store::rebuild(test.path, decode, no_progress()).ok());
  CHECK(readable(*watch));
}
