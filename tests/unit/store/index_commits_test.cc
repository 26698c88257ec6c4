// The history of commits, and how one hears of them.
#include <doctest/doctest.h>

#include <algorithm>

#include "index_support.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Kind = Commit::Kind;

std::uint64_t end_of(Store& store) {
  return store.snapshot().value()->journal_end();
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
  REQUIRE(store->set_tag("m", "other", 2).ok());
  REQUIRE(store->set_tag("m", "other", std::nullopt).ok());
  REQUIRE(store->remove_version("m", 2).ok());
  const std::uint64_t end = end_of(*store);

  CHECK(store->commits(end, end).value().empty());
  CHECK(store->commits(begin, first).value().size() == 1);
  const auto commits = store->commits(begin, end).value();
  REQUIRE(commits.size() == 6);
  CHECK(commits[0].kind == Kind::publish);
  CHECK(commits[0].number == 1);
  CHECK(commits[0].tags.size() == 1);
  CHECK(commits[0].local.view_inos.size() == 2);
  CHECK(commits[1].number == 2);
  const auto& views = commits[1].local.view_inos;
  const auto known = [&](Ino ino) { return ino < commits[1].local.ino_base; };
  CHECK(std::count_if(views.begin(), views.end(), known) == 1);
  CHECK(commits[2].kind == Kind::tags);
  CHECK(commits[2].tags == commits[0].tags);
  CHECK(commits[4].tags == commits[3].tags);
  CHECK(commits[5].kind == Kind::removal);
  CHECK(commits[5].model == "m");
  CHECK(commits[5].number == 2);
}

TEST_CASE("a history that is not there is refused") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1, 2}});
  const std::uint64_t end = end_of(*store);
  CHECK(store->commits(end, 0).error().code == Errc::invalid);
  CHECK(store->commits(0, end + 1).error().code == Errc::invalid);
  CHECK(store->commits(0, end - 1).error().code == Errc::invalid);
  CHECK(store->commits(1, end).error().code == Errc::invalid);
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
