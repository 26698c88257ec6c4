#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "unit/peers_swarm/world.h"

namespace weft::testing {
namespace {

using std::chrono::seconds;

constexpr std::uint32_t kUnits = 64;

// Nodes that fetch a version, from a source with all units or from an origin.
struct Fetching {
  explicit Fetching(const std::vector<std::string>& names, bool origin = false) : world(kUnits, origin) {
    if (!origin) {
      source.bytes.add_all();
      world.source = "s";
      world.holders = {"s"};
    }
    for (const std::string& name : names) nodes.push_back(&world.add(name));
  }
  void want_all() {
    for (World::Node* node : nodes) world.want_all(*node);
  }
  bool all_have_all() const {
    for (const World::Node* node : nodes)
      if (node->alive && !world.has_all(*node)) return false;
    return true;
  }
  std::size_t read(const World::Node& node) const {
    std::size_t units = 0;
    for (const auto& [name, count] : node.from) units += count;
    return units;
  }
  std::size_t read_from(const std::string& name) const {
    std::size_t units = 0;
    for (const World::Node* node : nodes)
      if (const auto from = node->from.find(name); from != node->from.end()) units += from->second;
    return units;
  }

  World world;
  World::Node& source = world.add("s");
  std::vector<World::Node*> nodes;
};

}  // namespace

TEST_CASE("three nodes fetch a version from each other, and the source sends each unit once") {
  Fetching fetching({"a", "b", "c"});
  World& world = fetching.world;
  world.directories = {"a", "b"};  // the node a is its own directory node
  fetching.want_all();
  REQUIRE(world.run_until([&] { return fetching.all_have_all(); }));
  for (const World::Node* node : fetching.nodes) {
    CAPTURE(node->name);
    CHECK(fetching.read(*node) == kUnits);
    CHECK(node->wrong == 0);
    CHECK(!node->from.contains(node->name));
  }
  CHECK(fetching.read_from("s") == kUnits);
  CHECK(world.run_until([&] { return world.sent(fetching.source).uploads == 0; }));
  CHECK(world.sent(fetching.source).sent == kUnits);
  CHECK(world.sent(fetching.source).is_source);
}

TEST_CASE("three nodes with a base name the units of a version to each other, and the source names each once") {
  Fetching fetching({"a", "b", "c"});
  World& world = fetching.world;
  world.directories = {"a", "b"};
  world.coded = true;
  world.reads = [](World::Node& /*node*/, PeerOffer& offer) {
    CHECK(offer.has_token());
    return true;
  };
  fetching.want_all();
  REQUIRE(world.run_until([&] { return fetching.all_have_all(); }));
  for (const World::Node* node : fetching.nodes) CHECK(fetching.read(*node) == kUnits);
  CHECK(fetching.read_from("s") == kUnits);
  CHECK(world.run_until([&] { return world.sent(fetching.source).uploads == 0; }));
  CHECK(world.sent(fetching.source).sent == kUnits);
}

TEST_CASE("a node that comes later gets its units from those before it") {
  Fetching fetching({"a", "b", "c"});
  World& world = fetching.world;
  world.directories = {"b"};
  World::Node& late = *fetching.nodes[2];
  world.want_all(*fetching.nodes[0]);
  world.want_all(*fetching.nodes[1]);
  REQUIRE(world.run_until([&] { return world.has_all(*fetching.nodes[0]) && world.has_all(*fetching.nodes[1]); }));
  CHECK(fetching.read_from("s") == kUnits);
  world.want_all(late);
  REQUIRE(world.run_until([&] { return world.has_all(late); }));
  CHECK(fetching.read(late) == kUnits);
  CHECK(late.from["a"] + late.from["b"] >= kUnits / 2);
}

TEST_CASE("a lone node gets all units from a holder, with a directory node or without") {
  for (const bool silent : {false, true}) {
    CAPTURE(silent);
    Fetching fetching({"a"});
    if (silent) fetching.world.directories = {"nobody", "nobody else"};
    fetching.want_all();
    REQUIRE(fetching.world.run_until([&] { return fetching.all_have_all(); }));
    CHECK(fetching.read_from("s") == kUnits);
  }
}

TEST_CASE("a node that fetches file after file of a version waits for no pause between two") {
  Fetching fetching({"a"});
  World& world = fetching.world;
  world.directories = {"s"};
  World::Node& node = *fetching.nodes[0];
  const auto fetch = [&](std::uint32_t unit) {
    const ChunkRun run = world.version.run(unit);
    REQUIRE(node.receiver->want(world.version.manifest(), std::span(&run, 1), false).ok());
    REQUIRE(world.run_until([&] { return node.bytes.count() == unit + 1; }));
    REQUIRE(world.run_until([&] { return world.sent(fetching.source).waiting == 0; }));  // its session has ended there
  };
  fetch(0);
  const SwarmTime begun = world.time.now();
  for (std::uint32_t unit = 1; unit <= 10; ++unit) fetch(unit);
  CHECK(world.time.now() - begun < Downloads::kAskAgain);
}

TEST_CASE("a node falls silent while it fetches, and the others end without it") {
  Fetching fetching({"a", "b", "c"});
  World& world = fetching.world;
  world.directories = {"a", "b"};
  World::Node& dying = *fetching.nodes[2];
  fetching.want_all();
  REQUIRE(world.run_until([&] { return dying.bytes.count() >= 5; }));
  dying.alive = false;
  CHECK(world.run_until([&] { return fetching.all_have_all(); }, seconds(120)));
  CHECK(fetching.read(*fetching.nodes[0]) == kUnits);
  CHECK(fetching.read(*fetching.nodes[1]) == kUnits);
}

TEST_CASE("reads fail now and then, and all units come all the same") {
  Fetching fetching({"a", "b", "c"});
  World& world = fetching.world;
  world.directories = {"s"};
  std::size_t reads = 0, failed = 0;
  world.reads = [&](World::Node& /*node*/, PeerOffer& /*offer*/) {
    const bool fails = ++reads % 7 == 0;
    failed += fails ? 1 : 0;
    return !fails;
  };
  fetching.want_all();
  CHECK(world.run_until([&] { return fetching.all_have_all(); }, seconds(120)));
  CHECK(failed > 0);
  for (const World::Node* node : fetching.nodes) CHECK(fetching.read(*node) == kUnits);
}

TEST_CASE("the first directory node dies, and the second introduces the nodes") {
  Fetching fetching({"a", "b"});
  World& world = fetching.world;
  world.directories = {"gone", "b"};
  fetching.want_all();
  CHECK(world.run_until([&] { return fetching.all_have_all(); }));
  CHECK(fetching.nodes[1]->directory->members(world.version.manifest()) == 2);
  CHECK(fetching.read_from("s") == kUnits);
}

TEST_CASE("three nodes fetch a version from the origin, which is read once") {
  Fetching fetching({"a", "b", "c"}, true);
  World& world = fetching.world;
  world.directories = {"a", "b"};
  fetching.want_all();
  REQUIRE(world.run_until([&] { return fetching.all_have_all(); }));
  for (World::Node* node : fetching.nodes) {
    CAPTURE(node->name);
    CHECK(fetching.read(*node) == kUnits);
    CHECK(node->wrong == 0);
    CHECK(node->from[""] > 0);
    CHECK(node->from[""] < kUnits);
  }
  CHECK(fetching.read_from("") == kUnits);
  const auto named = [&] { return fetching.nodes[0]->clerk->versions(); };
  CHECK(world.run_until([&] { return !named().empty() && named().front().uploads == 0; }));
  CHECK(named().front().sent == kUnits);
  CHECK(fetching.nodes[1]->clerk->versions().empty());
}

TEST_CASE("a lone node reads all of a version from the origin, as its own clerk or with another") {
  for (const char* directory : {"a", "s"}) {
    CAPTURE(directory);
    Fetching fetching({"a"}, true);
    fetching.world.directories = {directory};
    fetching.want_all();
    REQUIRE(fetching.world.run_until([&] { return fetching.all_have_all(); }));
    CHECK(fetching.read_from("") == kUnits);
  }
}

TEST_CASE("reads of the origin fail now and then, and all units come all the same") {
  Fetching fetching({"a", "b", "c"}, true);
  World& world = fetching.world;
  world.directories = {"s"};
  std::size_t reads = 0, failed = 0;
  world.reads = [&](World::Node& /*node*/, PeerOffer& offer) {
    const bool fails = offer.by_name() && ++reads % 7 == 0;
    failed += fails ? 1 : 0;
    return !fails;
  };
  fetching.want_all();
  CHECK(world.run_until([&] { return fetching.all_have_all(); }, seconds(120)));
  CHECK(failed > 0);
  CHECK(fetching.read_from("") < 2 * kUnits);
}

TEST_CASE("the clerk of the origin falls silent, and the second directory node becomes the clerk") {
  Fetching fetching({"a", "b", "c"}, true);
  World& world = fetching.world;
  world.directories = {"a", "b"};
  World::Node& clerk = *fetching.nodes[0];
  fetching.want_all();
  REQUIRE(world.run_until([&] { return clerk.bytes.count() >= 5; }));
  clerk.alive = false;
  CHECK(world.run_until([&] { return fetching.all_have_all(); }, seconds(120)));
  for (const std::size_t i : {1, 2}) CHECK(fetching.read(*fetching.nodes[i]) == kUnits);
  CHECK(fetching.read_from("") <= 2 * kUnits);
  CHECK(!fetching.nodes[1]->clerk->versions().empty());
}

}  // namespace weft::testing
