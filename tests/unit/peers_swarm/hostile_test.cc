// Swarms with a hostile node: all others get the right bytes all the same.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "peers/swarm/unit_offer.h"
#include "testing.h"
#include "unit/peers_swarm/world.h"

namespace weft::testing {
namespace {

using std::chrono::seconds;

constexpr std::uint32_t kUnits = 64;

enum class Offers : std::uint8_t { none, never, unknown, held, short_unit, long_unit, wrong_bytes };

// A source, three nodes that fetch from it, and a hostile node `m`, which has all bytes and fetches too.
struct Hostile {
  Hostile() {
    source.bytes.add_all();
    all.add_all();
    world.source = "s";
    world.holders = {"s"};
    world.directories = {"a"};
    for (const char* name : {"a", "b", "c"}) honest.push_back(&world.add(name));
  }
  // Makes the node answer wants in this way.
  void offer(Offers how) {
    mallory.on_want = [this, how](const std::string& from, const Want& want, PendingReply reply) {
      ++asked[from];
      if (how == Offers::never)
        kept.push_back(std::move(reply));
      else
        reply.give(answer(how, want));
    };
  }
  PeerReply answer(Offers how, const Want& want) {
    const auto has = must(UnitSet::decode(want.has, kUnits));
    const auto lacking = UnitSet::full(kUnits).first_not_in(has);
    if (how == Offers::none || !lacking) return offer_of_nothing();
    const std::uint32_t unit = how == Offers::held ? 0 : *lacking;
    PeerReply reply = must(offer_of(*world.version.units(), unit, all));
    if (how == Offers::unknown) reply.head = encode_offer({kUnits + unit});
    if (how == Offers::short_unit) reply.windows.clear();
    if (how == Offers::long_unit) reply.head.push_back(std::byte{1});
    if (how == Offers::wrong_bytes) {
      reply = must(offer_of(*world.version.units(), (unit + 1) % kUnits, all));
      reply.head = encode_offer({unit});
    }
    return reply;
  }
  void want_all() {
    for (World::Node* node : honest) world.want_all(*node);
    world.want_all(mallory);
  }
  bool all_have_all() const {
    return std::ranges::all_of(honest, [&](const World::Node* node) { return world.has_all(*node); });
  }
  std::size_t wrong() const {
    std::size_t sum = 0;
    for (const World::Node* node : honest) sum += node->wrong;
    return sum;
  }

  World world{kUnits};
  UnitBytes all{world.version};
  World::Node& source = world.add("s");
  World::Node& mallory = world.add("m");
  std::vector<World::Node*> honest;
  std::map<std::string, std::size_t> asked;  // wants that the hostile node got
  std::vector<PendingReply> kept;
};

}  // namespace

TEST_CASE("a partner that only receives, or whose offers are useless, delays the others but for its silence") {
  for (const auto how :
       {Offers::none, Offers::never, Offers::unknown, Offers::held, Offers::short_unit, Offers::long_unit}) {
    CAPTURE(static_cast<int>(how));
    Hostile swarm;
    swarm.offer(how);
    swarm.want_all();
    CHECK(swarm.world.run_until([&] { return swarm.all_have_all(); }, seconds(10)));
    CHECK(!swarm.asked.empty());
    CHECK(swarm.wrong() == 0);
    for (const World::Node* node : swarm.honest) CHECK((how == Offers::held || !node->from.contains("m")));
    CHECK(swarm.world.run_until([&] { return swarm.world.has_all(swarm.mallory); }, seconds(60)));
  }
}

TEST_CASE("a partner with wrong bytes gets no more requests than it had when the first of them came") {
  Hostile swarm;
  swarm.offer(Offers::wrong_bytes);
  swarm.source.bytes.remove(kUnits - 1);  // only the hostile node offers the unit
  swarm.want_all();
  CHECK(!swarm.world.run_until([&] { return swarm.all_have_all(); }, seconds(60)));
  for (const World::Node* node : swarm.honest) CHECK(node->bytes.count() == kUnits - 1);
  CHECK(swarm.wrong() > 0);
  for (const auto& asker : swarm.asked) {
    CAPTURE(asker.first);
    CHECK(asker.second <= 3 * kWantsOpen);
  }
  const ChunkRun last = swarm.world.version.run(kUnits - 1);
  swarm.source.bytes.add(kUnits - 1);
  swarm.source.sender->arrived(swarm.world.version.manifest(), std::span(&last, 1));
  CHECK(swarm.world.run_until([&] { return swarm.all_have_all(); }));
}

TEST_CASE("a directory node names the asker, strangers and another source each time, and all units come all the same") {
  Hostile swarm;
  swarm.world.directories = {"m", "b"};
  std::size_t joins = 0;
  swarm.mallory.on_join = [&](const std::string& from, const Join& /*join*/, PendingReply reply) {
    Partners partners{{from}, fmt::format("source {}", ++joins)};
    for (std::size_t i = 1; i < Downloads::kPartnersMax; ++i)
      partners.nodes.push_back(fmt::format("stranger {} {}", joins % 3, i));
    PeerReply named;
    named.head = encode_partners(partners);
    reply.give(std::move(named));
  };
  for (World::Node* node : swarm.honest) swarm.world.want_all(*node);
  CHECK(swarm.world.run_until([&] { return swarm.all_have_all(); }, seconds(120)));
  CHECK(joins >= 3);
  CHECK(swarm.wrong() == 0);
}

TEST_CASE("a directory node answers nothing, or nonsense, and the second one introduces the nodes") {
  for (const bool answers : {false, true}) {
    CAPTURE(answers);
    Hostile swarm;
    swarm.world.directories = {"m", "b"};
    swarm.mallory.on_join = [&](const std::string& /*from*/, const Join& /*join*/, PendingReply reply) {
      if (!answers) return swarm.kept.push_back(std::move(reply));
      PeerReply nonsense;
      nonsense.head = random_bytes(500, swarm.world.requests);
      reply.give(std::move(nonsense));
    };
    for (World::Node* node : swarm.honest) swarm.world.want_all(*node);
    CHECK(swarm.world.run_until([&] { return swarm.all_have_all(); }, seconds(10)));
    CHECK(swarm.honest[1]->directory->members(swarm.world.version.manifest()) == 3);
  }
}

TEST_CASE("a directory node that sends each node to itself as the source does not stop the swarm") {
  Hostile swarm;
  swarm.world.directories = {"m"};
  swarm.mallory.on_join = [&](const std::string& from, const Join& /*join*/, PendingReply reply) {
    PeerReply named;
    named.head = encode_partners({{}, from});
    reply.give(std::move(named));
  };
  for (World::Node* node : swarm.honest) swarm.world.want_all(*node);
  CHECK(swarm.world.run_until([&] { return swarm.all_have_all(); }));
}

}  // namespace weft::testing
