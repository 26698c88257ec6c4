// Events made from commits, and their JSON.
#include <doctest/doctest.h>

#include "events/event.h"

using namespace weft;

namespace {

using Kind = ModelEvent::Kind;

std::string json_of(const ModelEvent& event) {
  JsonWriter json;
  write_event(json, event);
  return json.take();
}

ModelEvent event_of(const std::string& model) {
  ModelEvent event;
  event.model = model;
  return event;
}

}  // namespace

TEST_CASE("a publish is one event with its tags") {
  const Commit commit{Commit::Kind::publish, "org/m", 4, {{"prod", 4}, {"a \"b\"", 4}}, 1000, 17, 300, {}, {}, "id",
                      {"alice", "node1"}};
  auto events = events_of(commit, 200);
  REQUIRE(events.size() == 1);
  CHECK(json_of(events[0]) ==
        R"({"event":"publish","model":"org/m","version":4,"tags":["prod","a \"b\""],"user":"alice","node":"node1",)"
        R"("publisher":"id","bytes":1000,"new_bytes":null,"time_ns":17,"position":300})");
  events[0].new_bytes = 10;
  CHECK(json_of(events[0]).find("\"new_bytes\":10,") != std::string::npos);
}

TEST_CASE("a removal names the version, and the tags that went with it") {
  const auto events =
      events_of({Commit::Kind::removal, "m", 2, {{"prod", 0}}, 0, 18, 400, {}, {}, {}, {"bob", ""}}, 300);
  REQUIRE(events.size() == 1);
  CHECK(json_of(events[0]) ==
        R"({"event":"remove","model":"m","version":2,"tags":["prod"],"user":"bob","node":"","time_ns":18,)"
        R"("position":400})");
}

TEST_CASE("a version whose bytes were lost says why") {
  const auto events = events_of({Commit::Kind::removal, "m", 2, {}, 0, 18, 400, "lost: its machine stopped"}, 300);
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == Kind::lost);
  CHECK(json_of(events[0]) ==
        R"({"event":"lost","model":"m","version":2,"tags":[],"user":"","node":"","why":"lost: its machine stopped",)"
        R"("time_ns":18,"position":400})");
}

TEST_CASE("events of a version that is in memory, then durable") {
  const auto memory = events_of({Commit::Kind::in_memory, "m", 2, {}, 0, 18, 400}, 300);
  CHECK(events_of({Commit::Kind::undelete, "m", 2, {}, 0, 18, 400}, 300).at(0).kind == Kind::undelete);
  CHECK(events_of({Commit::Kind::description, "m", 2, {}, 0, 18, 400}, 300).at(0).kind == Kind::note);
  const auto renamed = events_of({Commit::Kind::rename, "m", 0, {}, 0, 18, 400, {}, "org/m"}, 300);
  REQUIRE(renamed.size() == 1);
  CHECK(json_of(renamed[0]) ==
        R"({"event":"rename","model":"m","version":null,"to":"org/m","time_ns":18,"position":400})");
  CHECK(concerns(renamed[0], {"org"}));
  CHECK(concerns(renamed[0], {"m"}));
  CHECK_FALSE(concerns(renamed[0], {"org/other"}));

  Commit purge{Commit::Kind::purge, "m", 2, {}, 0, 19, 500};
  purge.by = {"ada", "node1"};
  const auto purged = events_of(purge, 400);
  REQUIRE(purged.size() == 1);
  CHECK(json_of(purged[0]) ==
        R"({"event":"purge","model":"m","version":2,"user":"ada","node":"node1","time_ns":19,"position":500})");
  const auto durable = events_of({Commit::Kind::on_disk, "m", 2, {}, 0, 19, 500}, 400);
  REQUIRE(memory.size() == 1);
  REQUIRE(durable.size() == 1);
  CHECK(json_of(memory[0]) == R"({"event":"memory","model":"m","version":2,"time_ns":18,"position":400})");
  CHECK(json_of(durable[0]) == R"({"event":"durable","model":"m","version":2,"time_ns":19,"position":500})");
}

TEST_CASE("changes of tags are an event for each version that they lead to") {
  const auto events =
      events_of({Commit::Kind::tags, "m", 0, {{"a", 2}, {"b", 0}, {"c", 2}, {"d", 0}}, 0, 19, 500}, 400);
  REQUIRE(events.size() == 2);
  CHECK(json_of(events[0]) ==
        R"({"event":"tag","model":"m","version":2,"tags":["a","c"],"user":"","node":"","time_ns":19,)"
        R"("position":400})");
  CHECK(json_of(events[1]) ==
        R"({"event":"tag","model":"m","version":null,"tags":["b","d"],"user":"","node":"","time_ns":19,)"
        R"("position":500})");
}

TEST_CASE("a restart is of no model") {
  ModelEvent event;
  event.kind = Kind::restart;
  event.time_ns = 20;
  event.position = 600;
  CHECK(json_of(event) == R"({"event":"restart","time_ns":20,"position":600})");
  CHECK(concerns(event, {"m"}));
}

TEST_CASE("a prefix is a model or the first part of a name") {
  CHECK(concerns(event_of("org/m"), {}));
  CHECK(concerns(event_of("org/m"), {"org"}));
  CHECK(concerns(event_of("org/m"), {"org/"}));
  CHECK(concerns(event_of("org/m"), {"x", "org/m"}));
  CHECK_FALSE(concerns(event_of("org/m"), {"org/m/"}));
  CHECK_FALSE(concerns(event_of("org/model"), {"org/m"}));
  CHECK_FALSE(concerns(event_of("organ"), {"org"}));
  CHECK_FALSE(concerns(event_of("m"), {"org/m"}));
}
