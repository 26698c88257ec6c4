// Removed versions that live again.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "fakes/stop_after.h"
#include "index_support.h"
#include "weft/store/walk.h"

using namespace weft;
using namespace weft::testing;

namespace {

VersionRow version_of(Store& store, std::string_view name, std::uint64_t number) {
  return must(must(store.snapshot())->version(must(model_of(store, name)).id, number));
}

LocalRow local_of(Store& store, VersionId version) {
  return must(must(store.snapshot())->local(version));
}

bool is_sound(StoreImpl& store) {
  const auto problems = must(store.fsck({}, decode, no_progress())).problems;
  CHECK(problems == std::vector<std::string>{});
  return problems.empty();
}

std::string rebuilt(const std::string& path) {
  CHECK(must(Store::rebuild(path, decode, no_progress())).problems == std::vector<std::string>{});
  return dump(*must(Store::open(path, {})), false);
}

Errc refusal(Store& store, std::string_view model, std::uint64_t number, std::string_view why) {
  const auto undeleted = store.undelete(model, number);
  REQUIRE_FALSE(undeleted.ok());
  CAPTURE(undeleted.error().message);
  CHECK(undeleted.error().message.find(why) != std::string::npos);
  return undeleted.error().code;
}

}  // namespace

TEST_CASE("a removed version comes back with its number, content, message and tags") {
  TestStore test;
  auto store = open_store(test.path);
  const VersionRow first = must_publish(*store, "m", {{1, 2}, {3}}, {{}, {"a", "b"}}).version;
  const VersionRow second = must_publish(*store, "m", {{1}, {4}}, {{{"m", 1}}, {}}).version;
  const LocalRow local = local_of(*store, first.id);
  must(store->remove_version("m", 1));
  const VersionRow gone = version_of(*store, "m", 1);
  CHECK(gone.removed_tags == std::vector<std::string>{"a", "b"});
  must(store->set_tag("m", "b", 2));
  CHECK(must(must(store->snapshot())->owner(content_id(1)))->first == second.id);

  const UndeletedVersion done = must(store->undelete("m", 1));
  CHECK(done.tags == std::vector<std::string>{"a"});
  REQUIRE(done.moved.size() == 1);
  CHECK(done.moved[0].name == "b");
  CHECK(done.moved[0].number == 2);
  const VersionRow back = version_of(*store, "m", 1);
  CHECK_FALSE(back.removed);
  CHECK(back.id == first.id);
  CHECK(back.message == first.message);
  CHECK(back.undeleted_ns > gone.removed_ns);
  CHECK(back.removed_tags.empty());
  CHECK(local_of(*store, back.id).ino_base == local.ino_base);
  CHECK(local_of(*store, back.id).view_inos == local.view_inos);
  auto snapshot = must(store->snapshot());
  const ModelRow model = must(snapshot->model("m"));
  CHECK(model.live == 2);
  CHECK(model.latest == 2);
  CHECK(must(snapshot->tag(model.id, "a")).number == 1);
  CHECK(must(snapshot->tag(model.id, "b")).number == 2);
  CHECK(must(snapshot->owner(content_id(1)))->first == first.id);
  CHECK(must(snapshot->children(first.id)).rows == std::vector<VersionId>{second.id});
  snapshot.reset();
  must(store->gc({}, no_progress()));
  CHECK(is_sound(*store));

  const std::string before = dump(*store, false);
  store.reset();
  CHECK(rebuilt(test.path) == before);
  store = open_store(test.path);
  CHECK(is_sound(*store));
  must(store->remove_version("m", 1));  // and again
  CHECK(must(store->undelete("m", 1)).tags == std::vector<std::string>{"a"});
  CHECK(is_sound(*store));
}

TEST_CASE("an undelete goes by the present name of the model, and the history of tags names its author") {
  TestStore test;
  auto store = open_store(test.path);
  const VersionId first = must_publish(*store, "m", {{1}}, {{}, {"a"}}).version.id;
  must_publish(*store, "m", {{2}});
  must(store->remove_version("m", 1));
  must(store->rename_model("m", "org/n"));
  CHECK(refusal(*store, "m", 1, "m was renamed to org/n") == Errc::not_found);
  must_publish(*store, "m", {{3}});  // another model, from number 3 on
  CHECK(refusal(*store, "m", 1, "m@1 was renamed to org/n@1") == Errc::not_found);
  const UndeletedVersion done = must(store->undelete("org/n", 1, {"alice", {}}));
  CHECK(done.model == "org/n");
  CHECK(done.tags == std::vector<std::string>{"a"});
  CHECK(version_of(*store, "org/n", 1).id == first);
  auto snapshot = must(store->snapshot());
  const TagMove move = must(snapshot->tag_moves(must(snapshot->model("org/n")).id)).rows.at(0);
  snapshot.reset();
  CHECK(move.name == "a");
  CHECK(move.before == 0);
  CHECK(move.number == 1);
  CHECK(move.by == Author{"alice", {}});
  must(store->remove_version("org/n", 1));
  must(store->rename_model("org/n", "o"));
  must(store->undelete("o", 1));
  CHECK(is_sound(*store));
  const std::string before = dump(*store, false);
  store.reset();
  CHECK(rebuilt(test.path) == before);
}

TEST_CASE("the last version of a model brings the model and its directories back") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "org/m", {{1}});
  must(store->remove_version("org/m", 1));
  CHECK_FALSE(must(store->snapshot())->namespace_entry("", "org").ok());
  must(store->undelete("org/m", 1));
  CHECK(must(must(store->snapshot())->namespace_entry("org", "m")).models == 1);
  CHECK(must(model_of(*store, "org/m")).latest == 1);
  must(store->remove_version("org/m", 1));
  must_publish(*store, "org", {{2}});
  CHECK(refusal(*store, "org/m", 1, "would hide") == Errc::exists);
  CHECK(is_sound(*store));
}

TEST_CASE("a version that a reader has open comes back after gc, and gc leaves it") {
  TestStore test;
  auto store = open_store(test.path);
  const VersionRow row = must_publish(*store, "m", {{1, 2}, {3}}).version;
  std::optional<VersionHold> hold = must(store->hold_version(row.id));
  must(store->remove_version("m", 1));
  CHECK(must(must(store->snapshot())->unreaped(0, 9)) == std::vector<VersionId>{row.id});
  CHECK(must(store->gc({}, no_progress())).versions_open == 1);
  must(store->undelete("m", 1));
  hold.reset();
  CHECK(must(must(store->snapshot())->unreaped(0, 9)).empty());
  CHECK(must(store->gc({}, no_progress())).versions_reaped == 0);
  CHECK(is_sound(*store));
}

TEST_CASE("a large version takes back what gc has released, unless gc has begun with its inodes") {
  constexpr unsigned kMany = limits::kBatchRows + 100;
  std::vector<unsigned> contents;
  for (unsigned n = 0; n < kMany; ++n) contents.push_back(n);
  TestStore test;
  auto store = open_store(test.path);
  const VersionRow large = must_publish(*store, "m", {contents}).version;
  const VersionRow small = must_publish(*store, "m", {{1, 2, 3}}).version;
  const auto owner = [&] { return must(must(store->snapshot())->owner(content_id(1)))->first; };

  must(store->remove_version("m", 1));
  must(store->undelete("m", 1));  // before gc
  CHECK(is_sound(*store));

  must(store->remove_version("m", 1));
  StopAfter first(1);
  CHECK(store->gc({}, first).error().code == Errc::cancelled);
  must(store->undelete("m", 1));  // after a part
  CHECK(owner() == large.id);
  CHECK(is_sound(*store));

  std::optional<VersionHold> hold = must(store->hold_version(large.id));
  must(store->remove_version("m", 1));
  CHECK(must(store->gc({}, no_progress())).versions_open == 1);
  CHECK(owner() == small.id);
  must(store->undelete("m", 1));  // after all but the inodes
  CHECK(owner() == large.id);
  hold.reset();
  CHECK(is_sound(*store));
  const std::string before = dump(*store, false);
  store.reset();
  CHECK(rebuilt(test.path) == before);

  store = open_store(test.path);
  must(store->remove_version("m", 1));
  StopAfter late(4);
  CHECK(store->gc({}, late).error().code == Errc::cancelled);
  CHECK(refusal(*store, "m", 1, "gc has freed its content") == Errc::absent);
  must(store->gc({}, no_progress()));
  CHECK(is_sound(*store));
}

TEST_CASE("an undelete whose writer dies behind the journal is replayed") {
  TestStore test;
  {
    auto store = open_store(test.path);
    must_publish(*store, "m", {{1, 2}, {3}}, {{}, {"a"}});
    must(store->remove_version("m", 1));
  }
  const int status = in_child([&] {
    CommitHooks hooks;
    hooks.after_journal = [] { ::kill(::getpid(), SIGKILL); };
    static_cast<void>(open_store(test.path, write_options(), hooks)->undelete("m", 1));
    return true;
  });
  CHECK(WIFSIGNALED(status));
  auto store = open_store(test.path);
  CHECK(store->parts().index.lock().ok());
  CHECK_FALSE(version_of(*store, "m", 1).removed);
  CHECK(must(must(store->snapshot())->tag(must(model_of(*store, "m")).id, "a")).number == 1);
  const std::string before = dump(*store, false);
  CHECK(is_sound(*store));
  store.reset();
  CHECK(rebuilt(test.path) == before);
}
