// Follows a store by its journal.
#include <doctest/doctest.h>

#include "events/follower.h"
#include "index_support.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Kind = ModelEvent::Kind;

// Returns texts such as "publish m 1 tag tag".
std::vector<std::string> texts_of(const std::vector<ModelEvent>& events) {
  std::vector<std::string> texts;
  for (const ModelEvent& event : events) {
    std::string text = fmt::format("{} {} {}", name_of(event.kind), event.model, event.version);
    for (const std::string& tag : event.tags) text += " " + tag;
    texts.push_back(std::move(text));
  }
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a follower is told of what other processes commit") {
  TestStore test;
  { must_publish(*open_store(test.path), "m", {{1}}); }
  const auto reader = Store::open(test.path, {}).value();
  EventFollower follower = EventFollower::begin(*reader).value();
  CHECK(follower.next().value().empty());
  REQUIRE(exited(in_child([&] {
    auto store = open_store(test.path);
    must_publish(*store, "m", {{2, 3}}, {{}, {"prod"}});
    return store->set_tag("m", "prod", 1).ok() && store->remove_version("m", 2).ok();
  })));
  follower.wait(std::chrono::seconds(60));
  CHECK(texts_of(follower.next().value()) == Texts{"publish m 2 prod", "tag m 1 prod", "remove m 2"});
  CHECK(follower.next().value().empty());
  CHECK(follower.position() == reader->snapshot().value()->journal_end());
}

TEST_CASE("following goes on from the position of an event") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "m", {{1}});
  must_publish(*store, "m", {{2}});
  must_publish(*store, "n", {{3}});
  const auto all = EventFollower::begin(*store, 0).value().next().value();
  REQUIRE(texts_of(all) == Texts{"publish m 1", "publish m 2", "publish n 1"});
  CHECK(texts_of(EventFollower::begin(*store, all[0].position).value().next().value()) ==
        Texts{"publish m 2", "publish n 1"});
  CHECK(EventFollower::begin(*store, all[2].position).value().next().value().empty());
}

TEST_CASE("a position that the journal does not know restarts, and the present state follows") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "m", {{1}}, {{}, {"old", "older"}});
  must_publish(*store, "m", {{2}}, {{}, {"prod"}});
  must_publish(*store, "n", {{3}});
  must_publish(*store, "gone", {{4}});
  REQUIRE(store->remove_version("gone", 1).ok());
  const std::uint64_t end = store->snapshot().value()->journal_end();
  EventFollower follower = EventFollower::begin(*store, end - 1).value();
  const auto events = follower.next().value();
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == Kind::restart);
  CHECK(events[0].position == end);
  CHECK(follower.next().value().empty());
  std::vector<ModelEvent> present;
  REQUIRE(present_state(*store, events[0], [&](ModelEvent event) -> Status {
            CHECK(event.position == end);
            present.push_back(std::move(event));
            return {};
          }).ok());
  CHECK(texts_of(present) == Texts{"publish m 2 prod", "tag m 1 old older", "publish n 1"});
}

TEST_CASE("an event has the version's new bytes") {
  TestStore test;
  const auto store = open_store(test.path);
  must_publish(*store, "m", {{1}});
  must_publish(*store, "m", {{1}, {2}});
  auto events = EventFollower::begin(*store, 0).value().next().value();
  REQUIRE(events.size() == 2);
  for (ModelEvent& event : events) add_new_bytes(*store, event);
  CHECK(events[1].bytes == 1001 + 1002);
  CHECK(events[1].new_bytes == 1002);
}
