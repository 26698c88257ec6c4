// The announcements planned for events.
#include <doctest/doctest.h>

#include <algorithm>

#include "events/follower.h"
#include "fuse/announce/plan.h"
#include "unit/store/index_support.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Lines = std::vector<std::string>;

// Returns lines such as "creation models/org/m 1".
Lines plan_of(Store& store, const std::vector<ModelEvent>& events) {
  Lines lines;
  const auto plan = announcements_of(store, events).value();
  for (const Announcement& step : plan) {
    constexpr const char* kKinds[] = {"nothing", "creation", "removal", "deletion", "replacement"};
    lines.push_back(fmt::format("{} {} {}", kKinds[static_cast<int>(step.kind)], step.directory, step.name));
  }
  return lines;
}

std::vector<ModelEvent> events_from(Store& store, std::uint64_t position) {
  EventFollower follower = EventFollower::begin(store, position).value();
  std::vector<ModelEvent> all;
  for (auto events = follower.next().value(); !events.empty(); events = follower.next().value())
    std::ranges::move(events, std::back_inserter(all));
  return all;
}

std::uint64_t end_of(Store& store) {
  return store.snapshot().value()->journal_end();
}

// Makes more events than are announced one by one. They set and delete a tag that no test checks.
void make_backlog(Store& store, const std::string& model) {
  for (std::size_t i = 0; i <= kAnnouncedEachMax / 2; ++i) {
    REQUIRE(store.set_tag(model, "other", 1).ok());
    REQUIRE(store.set_tag(model, "other", std::nullopt).ok());
  }
}

}  // namespace

TEST_CASE("a version is announced before its tags, and latest comes last") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "org/m", {{1}});
  const std::uint64_t begin = end_of(*store);
  must_publish(*store, "org/m", {{2}}, {{}, {"a", "b"}});
  CHECK(plan_of(*store, events_from(*store, begin)) == Lines{"creation models/org/m 2", "replacement models/org/m a",
                                                             "replacement models/org/m b",
                                                             "replacement models/org/m latest"});
}

TEST_CASE("a new model comes with the namespaces that it is the first in") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "org/m", {{1}});
  CHECK(plan_of(*store, events_from(*store, 0)) == Lines{"creation models org", "creation models/org m",
                                                         "creation models/org/m 1", "replacement models/org/m latest"});
  const std::uint64_t begin = end_of(*store);
  must_publish(*store, "org/n", {{2}});
  CHECK(plan_of(*store, events_from(*store, begin)) ==
        Lines{"creation models/org n", "creation models/org/n 1", "replacement models/org/n latest"});
}

TEST_CASE("an undelete creates the number, and the directory if the model has no other version") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "org/m", {{1}}, {{}, {"a"}});
  must_publish(*store, "org/n", {{2}});
  REQUIRE(store->remove_version("org/m", 1).ok());
  std::uint64_t begin = end_of(*store);
  REQUIRE(store->undelete("org/m", 1).ok());
  CHECK(plan_of(*store, events_from(*store, begin)) == Lines{"creation models/org m", "creation models/org/m 1",
                                                             "replacement models/org/m a",
                                                             "replacement models/org/m latest"});
  must_publish(*store, "org/m", {{3}});
  REQUIRE(store->remove_version("org/m", 1).ok());
  begin = end_of(*store);
  REQUIRE(store->undelete("org/m", 1).ok());
  CHECK(plan_of(*store, events_from(*store, begin)) == Lines{"creation models/org/m 1", "replacement models/org/m a"});
  begin = end_of(*store);
  REQUIRE(store->remove_version("org/m", 1).ok());
  REQUIRE(store->undelete("org/m", 1).ok());
  make_backlog(*store, "org/m");
  const Lines lines = plan_of(*store, events_from(*store, begin));
  CHECK(std::ranges::count(lines, "creation models/org/m 1") == 1);
  CHECK(std::ranges::count(lines, "removal models/org/m 1") == 0);
}

TEST_CASE("removals") {
  TestStore test;
  const auto store = open_store(test.path);
  for (unsigned i = 1; i <= 3; ++i) must_publish(*store, "org/m", {{i}});
  std::uint64_t begin = end_of(*store);
  REQUIRE(store->remove_version("org/m", 1).ok());
  CHECK(plan_of(*store, events_from(*store, begin)) == Lines{"removal models/org/m 1"});
  begin = end_of(*store);
  REQUIRE(store->remove_version("org/m", 3).ok());
  CHECK(plan_of(*store, events_from(*store, begin)) ==
        Lines{"removal models/org/m 3", "replacement models/org/m latest"});
  begin = end_of(*store);
  REQUIRE(store->remove_version("org/m", 2).ok());
  CHECK(plan_of(*store, events_from(*store, begin)) == Lines{"removal models/org m", "removal models org"});
}

TEST_CASE("a rename is the removal of one directory and the creation of another") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "org/m", {{1}});
  must_publish(*store, "other/n", {{2}});
  std::uint64_t begin = end_of(*store);
  REQUIRE(store->rename_model("org/m", "new/m").ok());
  CHECK(plan_of(*store, events_from(*store, begin)) ==
        Lines{"removal models/org m", "removal models org", "creation models new", "creation models/new m"});
  begin = end_of(*store);
  REQUIRE(store->rename_model("new/m", "other/m").ok());
  CHECK(plan_of(*store, events_from(*store, begin)) ==
        Lines{"removal models/new m", "removal models new", "creation models/other m"});
  begin = end_of(*store);
  REQUIRE(store->rename_model("other/m", "a").ok());
  must_publish(*store, "other/m", {{3}});
  REQUIRE(store->rename_model("a", "b").ok());
  CHECK(plan_of(*store, events_from(*store, begin)).back() == "replacement models/other/m latest");
}

TEST_CASE("a version takes its tags along") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "m", {{1}});
  must_publish(*store, "m", {{2}}, {{}, {"a", "b"}});
  const std::uint64_t begin = end_of(*store);
  REQUIRE(store->remove_version("m", 2).ok());
  CHECK(plan_of(*store, events_from(*store, begin)) ==
        Lines{"deletion models/m a", "deletion models/m b", "removal models/m 2", "replacement models/m latest"});
}

TEST_CASE("tags") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "m", {{1}});
  const std::uint64_t begin = end_of(*store);
  REQUIRE(store->set_tag("m", "prod", 1).ok());
  REQUIRE(store->set_tag("m", "prod", std::nullopt).ok());
  CHECK(plan_of(*store, events_from(*store, begin)) == Lines{"replacement models/m prod", "deletion models/m prod"});
}

TEST_CASE("several new models announce their namespace once, and their removals remove it once") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "org/m", {{1}});
  must_publish(*store, "org/n", {{2}});
  CHECK(plan_of(*store, events_from(*store, 0)) ==
        Lines{"creation models org", "creation models/org m", "creation models/org/m 1", "creation models/org n",
              "creation models/org/n 1", "replacement models/org/m latest", "replacement models/org/n latest"});
  const std::uint64_t begin = end_of(*store);
  REQUIRE(store->remove_version("org/m", 1).ok());
  REQUIRE(store->remove_version("org/n", 1).ok());
  CHECK(plan_of(*store, events_from(*store, begin)) ==
        Lines{"removal models/org m", "removal models org", "removal models/org n"});
}

TEST_CASE("a namespace comes with its first model, however many models it has") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "org/z", {{1}});
  Lines created = {"creation models org", "creation models/org z", "creation models/org/z 1"};
  Lines latest = {"replacement models/org/z latest"};
  for (std::size_t i = 0; i <= kAnnouncedPageRows; ++i) {
    const std::string name = fmt::format("m{:03}", i);
    must_publish(*store, "org/" + name, {{1}});
    created.push_back("creation models/org " + name);
    created.push_back(fmt::format("creation models/org/{} 1", name));
    latest.push_back(fmt::format("replacement models/org/{} latest", name));
  }
  std::ranges::move(latest, std::back_inserter(created));
  CHECK(plan_of(*store, events_from(*store, 0)) == created);
  // The event of the oldest model alone. The namespace lists this model last.
  const auto events = events_from(*store, 0);
  CHECK(plan_of(*store, {events.front()}) == Lines{"creation models org", "creation models/org z",
                                                   "creation models/org/z 1", "replacement models/org/z latest"});
  CHECK(plan_of(*store, {events.back()}).front() == fmt::format("creation models/org m{:03}", kAnnouncedPageRows));
}

TEST_CASE("many removals at once announce each model and the namespace once") {
  TestStore test;
  const auto store = open_store(test.path);
  constexpr std::size_t kModels = kAnnouncedEachMax / 2 + 1;
  for (std::size_t i = 0; i < kModels; ++i)
    for (const unsigned content : {1U, 2U}) must_publish(*store, fmt::format("org/m{:03}", i), {{content}});
  const std::uint64_t begin = end_of(*store);
  Lines removals;
  for (std::size_t i = 0; i < kModels; ++i) {
    for (const std::uint64_t version : {1, 2})
      REQUIRE(store->remove_version(fmt::format("org/m{:03}", i), version).ok());
    removals.push_back(fmt::format("removal models/org m{:03}", i));
    if (i == 0) removals.push_back("removal models org");
  }
  const auto events = events_from(*store, begin);
  REQUIRE(events.size() > kAnnouncedEachMax);
  CHECK(plan_of(*store, events) == removals);
}

TEST_CASE("a republished model announces its directory, also if a newer version follows") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "m", {{1}});
  REQUIRE(store->remove_version("m", 1).ok());
  const std::uint64_t begin = end_of(*store);
  must_publish(*store, "m", {{2}});
  const auto events = events_from(*store, begin);
  must_publish(*store, "m", {{3}});
  CHECK(plan_of(*store, events) == Lines{"creation models m", "creation models/m 2", "replacement models/m latest"});
}

TEST_CASE("a backlog leads to the newest version and the last state of each tag") {
  TestStore test;
  const auto store = open_store(test.path);
  for (unsigned i = 1; i <= 2; ++i) must_publish(*store, "m", {{i}}, {{}, {fmt::format("of{}", i)}});
  const std::uint64_t begin = end_of(*store);
  must_publish(*store, "m", {{3}}, {{}, {"prod", "first"}});
  make_backlog(*store, "m");
  REQUIRE(store->set_tag("m", "prod", 1).ok());
  must_publish(*store, "m", {{4}}, {{}, {"fresh"}});
  must_publish(*store, "n", {{1}});
  REQUIRE(store->set_tag("m", "prod", 2).ok());
  REQUIRE(store->set_tag("m", "of1", std::nullopt).ok());
  const auto events = events_from(*store, begin);
  REQUIRE(events.size() > kAnnouncedEachMax);
  CHECK(plan_of(*store, events) == Lines{"replacement models/m first", "deletion models/m other", "creation models/m 4",
                                         "replacement models/m fresh", "creation models n", "creation models/n 1",
                                         "replacement models/m prod", "deletion models/m of1",
                                         "replacement models/m latest", "replacement models/n latest"});
}

TEST_CASE("a backlog announces the removals of earlier versions and tags") {
  TestStore test;
  const auto store = open_store(test.path);
  for (unsigned i = 1; i <= 3; ++i) must_publish(*store, "m", {{i}}, {{}, {fmt::format("of{}", i)}});
  must_publish(*store, "gone", {{1}});
  const std::uint64_t begin = end_of(*store);
  must_publish(*store, "m", {{4}}, {{}, {"prod"}});
  must_publish(*store, "short", {{1}});
  make_backlog(*store, "m");
  for (const std::uint64_t number : {2, 4, 3}) REQUIRE(store->remove_version("m", number).ok());
  REQUIRE(store->remove_version("gone", 1).ok());
  REQUIRE(store->remove_version("short", 1).ok());
  const auto events = events_from(*store, begin);
  REQUIRE(events.size() > kAnnouncedEachMax);
  CHECK(plan_of(*store, events) == Lines{"deletion models/m other", "deletion models/m of2", "removal models/m 2",
                                         "deletion models/m prod", "deletion models/m of3", "removal models/m 3",
                                         "removal models gone", "replacement models/m latest"});
}

TEST_CASE("the backlog of a node that joins has the directories of all models") {
  TestStore test;
  const auto store = open_store(test.path);
  for (unsigned i = 1; i <= kAnnouncedEachMax / 2 + 1; ++i) {
    must_publish(*store, "org/m", {{i}});
    must_publish(*store, "org/n", {{i}});
  }
  const auto events = events_from(*store, 0);
  REQUIRE(events.size() > kAnnouncedEachMax);
  const std::size_t newest = kAnnouncedEachMax / 2 + 1;
  CHECK(plan_of(*store, events) == Lines{"creation models org", "creation models/org m",
                                         fmt::format("creation models/org/m {}", newest), "creation models/org n",
                                         fmt::format("creation models/org/n {}", newest),
                                         "replacement models/org/m latest", "replacement models/org/n latest"});
}

TEST_CASE("after a restart all versions and tags are announced") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "m", {{1}}, {{}, {"old"}});
  must_publish(*store, "m", {{2}}, {{}, {"prod"}});
  must_publish(*store, "org/n", {{2}});
  CHECK(plan_of(*store, events_from(*store, 1)) ==
        Lines{"creation models m", "creation models/m 2", "replacement models/m prod", "replacement models/m old",
              "creation models org", "creation models/org n", "creation models/org/n 1", "replacement models/m latest",
              "replacement models/org/n latest"});
}
