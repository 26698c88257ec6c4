#include "swarm/introductions.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "unit/swarm/swarm.h"

namespace weft::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// The directory of a version, its clock, and the partners that each node was told of or hears of by a want.
struct Directory {
  explicit Directory(std::uint64_t seed = 1) : introductions(seed) {}

  void join(SwarmNode node, const std::string& location = {}) {
    REQUIRE(introductions.join(node, location, now));
    locations.try_emplace(node, location);
  }
  void join(SwarmNode first, std::size_t count, const std::string& location = {}) {
    for (SwarmNode node = first; node < first + count; ++node) join(node, location);
  }
  // The answers of all joins, by node.
  std::map<SwarmNode, Introduction> introduce() {
    now += Introductions::kJoinWait;
    std::map<SwarmNode, Introduction> answers;
    for (const Introduction& answer : introductions.introduce(now)) {
      REQUIRE(answers.emplace(answer.node, answer).second);
      std::set<SwarmNode> named;
      for (const SwarmNode partner : answer.partners) {
        CHECK(partner != answer.node);
        CHECK(named.insert(partner).second);
        partners[answer.node].insert(partner);
        partners[partner].insert(answer.node);
      }
    }
    return answers;
  }
  bool is_connected() const {
    std::set<SwarmNode> reached = {locations.begin()->first};
    std::vector<SwarmNode> left(reached.begin(), reached.end());
    while (!left.empty()) {
      const SwarmNode node = left.back();
      left.pop_back();
      if (!partners.contains(node)) continue;
      for (const SwarmNode partner : partners.at(node))
        if (reached.insert(partner).second) left.push_back(partner);
    }
    return reached.size() == locations.size();
  }
  // Pairs of partners at different locations.
  std::size_t bridges() const {
    std::size_t ends = 0;
    for (const auto& [node, others] : partners)
      for (const SwarmNode other : others) ends += locations.at(node) != locations.at(other) ? 1 : 0;
    return ends / 2;
  }

  Introductions introductions;
  SwarmTime now = kStart;
  std::map<SwarmNode, std::string> locations;
  std::map<SwarmNode, std::set<SwarmNode>> partners;
};

std::size_t source_askers(const std::map<SwarmNode, Introduction>& answers) {
  return static_cast<std::size_t>(
      std::count_if(answers.begin(), answers.end(), [](const auto& one) { return one.second.may_ask_source; }));
}

}  // namespace

TEST_CASE("newcomers are joined by two rings") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    for (std::size_t count = 1; count <= 100; ++count) {
      CAPTURE(seed);
      CAPTURE(count);
      Directory directory(seed);
      directory.join(0, count);
      const auto answers = directory.introduce();
      CHECK(answers.size() == count);
      CHECK(directory.is_connected());
      std::size_t pairs = 0;
      for (const auto& [node, answer] : answers) {
        pairs += answer.partners.size();
        CHECK(answer.partners.size() >= std::min<std::size_t>(2, count - 1));
        CHECK(answer.partners.size() <= 4);
        for (const SwarmNode partner : answer.partners) {
          const auto& others = answers.at(partner).partners;
          CHECK(std::count(others.begin(), others.end(), node) == 1);
        }
      }
      if (count > 10) CHECK(pairs > 3 * count);  // few pairs are neighbours in both rings
    }
  }
}

TEST_CASE("the rings depend on the seed alone") {
  const auto answers = [](std::uint64_t seed) {
    Directory directory(seed);
    directory.join(0, 50);
    return directory.introduce();
  };
  CHECK(answers(1) == answers(1));
  CHECK(answers(1) != answers(2));
}

TEST_CASE("a join is answered after kJoinWait, with those that came meanwhile") {
  Introductions introductions(1);
  CHECK_FALSE(introductions.due());
  CHECK(introductions.join(1, "", kStart));
  CHECK(introductions.due() == kStart + Introductions::kJoinWait);
  CHECK(introductions.join(2, "", kStart + milliseconds(20)));
  CHECK(introductions.join(1, "", kStart + milliseconds(20)));
  CHECK(introductions.due() == kStart + Introductions::kJoinWait);
  CHECK(introductions.introduce(kStart + Introductions::kJoinWait - nanoseconds(1)).empty());
  const auto answers = introductions.introduce(kStart + Introductions::kJoinWait);
  REQUIRE(answers.size() == 2);
  CHECK(answers[0] == Introduction{1, {2}, true});
  CHECK(answers[1] == Introduction{2, {1}, true});
  CHECK_FALSE(introductions.due());
  CHECK(introductions.introduce(kStart + std::chrono::seconds(1)).empty());
}

TEST_CASE("a late comer gets up to four earlier nodes") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const std::size_t earlier : {1U, 2U, 3U, 4U, 8U, 100U}) {
      CAPTURE(seed);
      CAPTURE(earlier);
      Directory directory(seed);
      directory.join(0, earlier);
      directory.introduce();
      directory.join(1'000);
      const auto answers = directory.introduce();
      REQUIRE(answers.size() == 1);
      const auto& partners = answers.at(1'000).partners;
      CHECK(partners.size() <= Introductions::kEarlierPartners);
      // Of four, a random draw may miss one.
      CHECK(partners.size() >= (earlier == 4 ? 3 : std::min(earlier, Introductions::kEarlierPartners)));
    }
  }
}

TEST_CASE("nodes that come one after the other stay connected, and none gets more than kPartnersMax") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    Directory directory(seed);
    for (SwarmNode node = 0; node < 300; ++node) {
      directory.join(node);
      const auto answers = directory.introduce();
      CHECK(answers.at(node).partners.empty() == (node == 0));
      CHECK(directory.is_connected());
    }
    for (const auto& [node, partners] : directory.partners) CHECK(partners.size() <= Introductions::kPartnersMax);
  }
}

TEST_CASE("newcomers get a partner although all earlier nodes have enough") {
  Directory directory;
  directory.join(0, 1);
  directory.introduce();
  for (SwarmNode node = 1; node <= 40; ++node) {
    directory.join(node);
    CHECK(directory.introduce().at(node).partners.size() >= 1);
    directory.introductions.leave(node);  // the partners of node 0 come and go
  }
  CHECK(directory.introductions.members() == 1);
}

TEST_CASE("kSourceAskers nodes may ask the source, and places become free") {
  Directory directory;
  directory.join(0, 5);
  CHECK(source_askers(directory.introduce()) == 5);
  directory.join(5, 5);
  auto answers = directory.introduce();
  CHECK(source_askers(answers) == Introductions::kSourceAskers - 5);
  CHECK(answers.at(5).may_ask_source);
  CHECK_FALSE(answers.at(9).may_ask_source);
  directory.join(10, 1);
  CHECK(source_askers(directory.introduce()) == 0);

  directory.introductions.finish(0);
  directory.introductions.finish(0);
  directory.introductions.leave(1);
  directory.introductions.leave(1);
  directory.introductions.finish(9);  // had no place
  directory.introductions.finish(77);
  directory.introductions.leave(77);
  directory.join(11, 5);
  CHECK(source_askers(directory.introduce()) == 2);
  CHECK(directory.introductions.members() == 15);
}

TEST_CASE("a node that may ask the source keeps its place when it joins again") {
  Directory directory;
  directory.join(0, 8);
  CHECK(source_askers(directory.introduce()) == 8);
  directory.join(3);
  directory.join(20);
  const auto answers = directory.introduce();
  CHECK(answers.at(3).may_ask_source);
  CHECK_FALSE(answers.at(20).may_ask_source);
}

TEST_CASE("a node that finished and joins again may ask the source again") {
  Directory directory;
  directory.join(0, 2);
  directory.introduce();
  directory.introductions.finish(0);
  directory.join(0);
  CHECK(directory.introduce().at(0).may_ask_source);
}

TEST_CASE("a node that finishes before its answer takes no place") {
  Directory directory;
  directory.join(0, 9);
  directory.introductions.finish(0);
  const auto answers = directory.introduce();
  CHECK_FALSE(answers.at(0).may_ask_source);
  CHECK(source_askers(answers) == Introductions::kSourceAskers);
}

TEST_CASE("partners are of the same location but for kBridges pairs") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const std::size_t locations : {2U, 3U, 7U}) {
      CAPTURE(seed);
      CAPTURE(locations);
      Directory directory(seed);
      for (SwarmNode location = 0; location < locations; ++location)
        directory.join(100 * location, 20, std::to_string(location));
      directory.introduce();
      CHECK(directory.is_connected());
      CHECK(directory.bridges() <= (locations - 1) * Introductions::kBridges);
      CHECK(directory.bridges() >= locations - 1);
      for (SwarmNode location = 0; location < locations; ++location) {
        std::size_t ends = 0;
        for (SwarmNode node = 100 * location; node < 100 * location + 20; ++node)
          for (const SwarmNode other : directory.partners[node])
            ends += directory.locations[other] != directory.locations[node];
        CHECK(ends >= Introductions::kBridges);
      }
    }
  }
}

TEST_CASE("more newcomers of a location draw no more bridges") {
  Directory directory;
  directory.join(0, 20, "a");
  directory.join(100, 20, "b");
  directory.introduce();
  const std::size_t bridges = directory.bridges();
  CHECK(bridges == Introductions::kBridges);
  for (SwarmNode node = 200; node < 220; ++node) {
    directory.join(node, "b");
    directory.introduce();
  }
  CHECK(directory.bridges() <= bridges + Introductions::kBridges);
  CHECK(directory.is_connected());
}

TEST_CASE("nodes of two locations that come one after the other stay connected") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    Directory directory(seed);
    for (SwarmNode node = 0; node < 100; ++node) {
      directory.join(node, node % 3 == 0 ? "a" : "b");
      directory.introduce();
      CHECK(directory.is_connected());
    }
    CHECK(directory.bridges() <= 2 * Introductions::kBridges);
  }
}

TEST_CASE("a location whose bridges have left gets new ones") {
  Directory directory;
  directory.join(0, 20, "a");
  directory.join(100, 20, "b");
  directory.introduce();
  for (SwarmNode node = 100; node < 120; ++node) {
    const auto& partners = directory.partners[node];
    if (std::any_of(partners.begin(), partners.end(), [](SwarmNode other) { return other < 100; }))
      directory.introductions.leave(node);
  }
  CHECK(directory.introductions.members() < 40);
  directory.join(200, 10, "b");
  std::size_t bridges = 0;
  for (const auto& [node, answer] : directory.introduce())
    for (const SwarmNode partner : answer.partners) bridges += partner < 100;
  CHECK(bridges >= 1);
  CHECK(bridges <= Introductions::kBridges);
}

TEST_CASE("members of too many locations count as without one, and are connected all the same") {
  Directory directory;
  constexpr std::size_t kMore = Introductions::kLocationsMax + 500;
  for (SwarmNode node = 0; node < kMore; ++node) directory.join(node, fmt::format("rack{}", node));
  directory.introduce();
  CHECK(directory.is_connected());
  directory.join(kMore, 4, "rack0");
  const auto answers = directory.introduce();
  CHECK(answers.size() == 4);
  CHECK(directory.is_connected());
  const auto& partners = answers.at(kMore).partners;  // of its location: the other newcomers, and the first node
  CHECK(std::count_if(partners.begin(), partners.end(), [](SwarmNode node) { return node == 0 || node > kMore; }) >= 2);
}

TEST_CASE("a member keeps its first location") {
  Directory directory;
  directory.join(0, 10, "a");
  directory.join(100, 10, "b");
  directory.introduce();
  directory.join(0, "b");
  directory.introduce();
  directory.introductions.leave(0);
  directory.join(300, 1, "a");
  CHECK(directory.introduce().at(300).partners.size() >= 3);
  CHECK(directory.is_connected());
}

TEST_CASE("a hungry node gets one more partner each time, all members in turn and never itself") {
  std::set<SwarmNode> first;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Directory directory(seed);
    directory.join(0, 2, "a");
    directory.join(100, 2, "b");
    directory.introduce();
    for (int round = 0; round < 3; ++round) {
      std::set<SwarmNode> met;
      for (int i = 0; i < 3; ++i) {
        directory.join(0, "a");
        const auto answers = directory.introduce();
        REQUIRE(answers.size() == 1);
        REQUIRE(answers.at(0).partners.size() == 1);
        met.insert(answers.at(0).partners[0]);
        if (round == 0 && i == 0) first.insert(answers.at(0).partners[0]);
      }
      CHECK(met == std::set<SwarmNode>{1, 100, 101});
    }
  }
  CHECK(first.size() == 3);
}

TEST_CASE("a hungry node may get a partner that has kPartnersMax") {
  Directory directory;
  directory.join(0, 2);
  directory.introduce();
  for (int i = 0; i < 30; ++i) {
    directory.join(0);
    CHECK(directory.introduce().at(0).partners == std::vector<SwarmNode>{1});
  }
}

TEST_CASE("a hungry node that is alone gets nobody") {
  Directory directory;
  directory.join(0);
  directory.introduce();
  directory.join(0);
  const auto answers = directory.introduce();
  CHECK(answers.at(0) == Introduction{0, {}, true});
}

TEST_CASE("a hungry node gets an earlier partner beside the newcomers") {
  Directory directory;
  directory.join(0, 3);
  directory.introduce();
  directory.join(0);
  directory.join(10, 4);
  const auto partners = directory.introduce().at(0).partners;
  CHECK(std::any_of(partners.begin(), partners.end(), [](SwarmNode node) { return node < 10; }));
}

TEST_CASE("a member that says nothing for kSilence is forgotten") {
  Directory directory;
  directory.join(0, 10);
  directory.introduce();
  const SwarmTime heard = kStart + std::chrono::seconds(30);
  directory.introductions.hear(4, heard);
  directory.introductions.hear(77, heard);
  directory.now = kStart + Introductions::kSilence - Introductions::kJoinWait;
  directory.join(100);
  CHECK(directory.introduce().at(100).partners.size() == 4);
  CHECK(directory.introductions.members() == 11);
  directory.join(101);
  const auto answers = directory.introduce();
  CHECK(directory.introductions.members() == 3);
  const auto& partners = answers.at(101).partners;
  CHECK(std::set<SwarmNode>(partners.begin(), partners.end()) == std::set<SwarmNode>{4, 100});
  CHECK(answers.at(101).may_ask_source);
}

TEST_CASE("members are forgotten on time, whoever was heard meanwhile") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    SwarmRandom random(seed);
    Directory directory(seed);
    std::map<SwarmNode, SwarmTime> heard;
    for (int i = 0; i < 400; ++i) {
      directory.now += milliseconds(random.below(5'000));
      const auto node = static_cast<SwarmNode>(random.below(60));
      if (heard.contains(node) && random.below(2) == 0) {
        directory.introductions.hear(node, directory.now);
        heard[node] = directory.now;
        continue;
      }
      heard[node] = directory.now;
      directory.join(node);
      directory.introduce();
      std::erase_if(heard, [&](const auto& one) { return one.second + Introductions::kSilence < directory.now; });
      REQUIRE(directory.introductions.members() == heard.size());
    }
  }
}

TEST_CASE("a node that leaves before its answer gets none") {
  Directory directory;
  directory.join(0, 3);
  directory.introductions.leave(1);
  const auto answers = directory.introduce();
  CHECK(answers.size() == 2);
  CHECK(answers.at(0).partners == std::vector<SwarmNode>{2});
  directory.join(5);
  directory.introductions.leave(5);
  CHECK_FALSE(directory.introductions.due());
  CHECK(directory.introduce().empty());
}

TEST_CASE("nodes come and go in any order") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    SwarmRandom random(seed);
    Directory directory(seed);
    std::set<SwarmNode> members;
    for (int i = 0; i < 500; ++i) {
      const auto node = static_cast<SwarmNode>(random.below(40));
      if (random.below(3) == 0) {
        directory.introductions.leave(node);
        members.erase(node);
        directory.locations.erase(node);
      } else {
        directory.join(node, std::to_string(random.below(3)));
        members.insert(node);
      }
      if (random.below(4) != 0) continue;
      for (const auto& [to, answer] : directory.introduce())
        for (const SwarmNode partner : answer.partners) REQUIRE(members.contains(partner));
    }
    REQUIRE(directory.introductions.members() == members.size());
  }
}

TEST_CASE("a directory has at most kMembersMax members") {
  Introductions introductions(1);
  for (SwarmNode node = 0; node < Introductions::kMembersMax; ++node) REQUIRE(introductions.join(node, "", kStart));
  CHECK_FALSE(introductions.join(100'000, "", kStart));
  CHECK(introductions.join(5, "", kStart));
  CHECK(introductions.members() == Introductions::kMembersMax);
  introductions.leave(6);
  CHECK(introductions.join(100'000, "", kStart));
  CHECK_FALSE(introductions.join(100'001, "", kStart));
  // The silent ones make place.
  CHECK(introductions.join(100'001, "", kStart + Introductions::kSilence + nanoseconds(1)));
  CHECK(introductions.members() == 1);
}

TEST_CASE("10,000 nodes that join at once are connected, and later ones join without a look at all of them") {
  constexpr SwarmNode kAtOnce = 10'000, kLater = 100;
  Directory directory;
  for (SwarmNode node = 0; node < kAtOnce; ++node) directory.introductions.join(node, "", kStart);
  const auto answers = directory.introductions.introduce(kStart + Introductions::kJoinWait);
  CHECK(directory.introductions.examined() <= std::uint64_t{kAtOnce} * 16);
  REQUIRE(answers.size() == kAtOnce);
  for (const Introduction& answer : answers) {
    directory.locations.emplace(answer.node, "");
    for (const SwarmNode partner : answer.partners) directory.partners[answer.node].insert(partner);
  }
  CHECK(directory.is_connected());
  const std::uint64_t before = directory.introductions.examined();
  for (SwarmNode node = kAtOnce; node < kAtOnce + kLater; ++node) {
    directory.join(node);
    CHECK(directory.introduce().at(node).partners.size() == Introductions::kEarlierPartners);
  }
  CHECK(directory.introductions.examined() - before <= std::uint64_t{kLater} * 32);
}

}  // namespace weft::testing
