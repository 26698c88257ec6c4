// What the announcer performs for events.
#include <doctest/doctest.h>

#include "events/follower.h"
#include "fuse/announce/plan.h"
#include "unit/store/index_support.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Lines = std::vector<std::string>;

// "creation org/m 1"
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

}  // namespace

TEST_CASE("a version is announced before its tags, and latest comes last") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "org/m", {{1}});
  const std::uint64_t begin = end_of(*store);
  must_publish(*store, "org/m", {{2}}, {{}, {"a", "b"}});
  CHECK(plan_of(*store, events_from(*store, begin)) ==
        Lines{"creation org/m 2", "replacement org/m a", "replacement org/m b", "replacement org/m latest"});
}

TEST_CASE("a new model comes with the namespaces that it is the first in") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "org/m", {{1}});
  CHECK(plan_of(*store, events_from(*store, 0)) ==
        Lines{"creation  org", "creation org m", "creation org/m 1", "replacement org/m latest"});
  const std::uint64_t begin = end_of(*store);
  must_publish(*store, "org/n", {{2}});
  CHECK(plan_of(*store, events_from(*store, begin)) ==
        Lines{"creation org n", "creation org/n 1", "replacement org/n latest"});
}

TEST_CASE("removals") {
  TestStore test;
  const auto store = open_store(test.path);
  for (unsigned i = 1; i <= 3; ++i) must_publish(*store, "org/m", {{i}});
  std::uint64_t begin = end_of(*store);
  REQUIRE(store->remove_version("org/m", 1).ok());
  CHECK(plan_of(*store, events_from(*store, begin)) == Lines{"removal org/m 1"});
  begin = end_of(*store);
  REQUIRE(store->remove_version("org/m", 3).ok());
  CHECK(plan_of(*store, events_from(*store, begin)) == Lines{"removal org/m 3", "replacement org/m latest"});
  begin = end_of(*store);
  REQUIRE(store->remove_version("org/m", 2).ok());
  CHECK(plan_of(*store, events_from(*store, begin)) == Lines{"removal org m", "removal  org"});
}

TEST_CASE("tags") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "m", {{1}});
  const std::uint64_t begin = end_of(*store);
  REQUIRE(store->set_tag("m", "prod", 1).ok());
  REQUIRE(store->set_tag("m", "prod", std::nullopt).ok());
  CHECK(plan_of(*store, events_from(*store, begin)) == Lines{"replacement m prod", "deletion m prod"});
}

TEST_CASE("of a backlog, and after a restart, the newest version of each model is announced") {
  TestStore test;
  const auto store = open_store(test.path);
  for (unsigned i = 1; i <= kAnnouncedEachMax / 2; ++i) {
    must_publish(*store, "m", {{i}});
    must_publish(*store, "n", {{i}});
  }
  must_publish(*store, "m", {{1000}}, {{}, {"prod"}});
  const auto events = events_from(*store, 0);
  REQUIRE(events.size() > kAnnouncedEachMax);
  CHECK(plan_of(*store, events) == Lines{fmt::format("creation n {}", kAnnouncedEachMax / 2),
                                         fmt::format("creation m {}", kAnnouncedEachMax / 2 + 1), "replacement m prod",
                                         "replacement n latest", "replacement m latest"});
  CHECK(plan_of(*store, events_from(*store, 1)) == Lines{"replacement m latest", "replacement n latest"});
}
