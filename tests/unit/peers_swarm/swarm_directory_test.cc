#include "peers/swarm/swarm_directory.h"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "fakes/manual_time.h"
#include "unit/peers_swarm/test_version.h"

namespace weft::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Names = std::vector<std::string>;
using Asked = std::shared_ptr<KeptReply>;

constexpr auto kWait = Introductions::kJoinWait;

Digest version_of(std::uint64_t number) {
  return blob_named(number, 0).root;
}

// A directory node, and its clock.
struct Directory {
  explicit Directory(bool clerk = false) : is_clerk(clerk) {}
  Asked join(std::string_view node, Join::State state = Join::State::fetches, std::uint64_t version = 1) {
    auto reply = std::make_shared<KeptReply>();
    owner.receive(node, {version_of(version), "", state}, PendingReply(reply));
    return reply;
  }
  void pass(std::chrono::milliseconds duration) {
    time.pass(duration);
    owner.run();
  }

  const bool is_clerk;
  ManualTime time;
  std::string source = "s";
  int asked = 0, woken = 0;
  SwarmDirectory owner{[this](const Digest& /*manifest*/) {
                         ++asked;
                         return source;
                       },
                       [this] { ++woken; }, 1, time, is_clerk};
};

Partners partners_of(const Asked& asked) {
  REQUIRE(asked->reply);
  REQUIRE(asked->reply->ok());
  return must(decode_partners((*asked->reply)->head));
}

Errc error_of(const Asked& asked) {
  REQUIRE(asked->reply);
  REQUIRE(!asked->reply->ok());
  return asked->reply->error().code;
}

}  // namespace

TEST_CASE("two nodes that join within the wait become partners, and may ask the source") {
  Directory directory;
  const Asked a = directory.join("a");
  CHECK(directory.woken == 1);
  CHECK(directory.owner.run() == directory.time.now() + kWait);
  directory.pass(milliseconds(10));
  const Asked b = directory.join("b");
  CHECK(!a->reply);
  CHECK(directory.asked == 0);
  directory.pass(milliseconds(20));
  CHECK(partners_of(a) == Partners{{"b"}, "s"});
  CHECK(partners_of(b) == Partners{{"a"}, "s"});
  CHECK(directory.asked == 1);
  CHECK(directory.owner.members(version_of(1)) == 2);
}

TEST_CASE("nodes that join for different versions are no partners") {
  Directory directory;
  const Asked a = directory.join("a", Join::State::fetches, 1);
  const Asked b = directory.join("b", Join::State::fetches, 2);
  directory.pass(kWait);
  CHECK(partners_of(a) == Partners{{}, "s"});
  CHECK(partners_of(b) == Partners{{}, "s"});
  REQUIRE(directory.owner.versions().size() == 2);
  for (const IntroducedVersion& one : directory.owner.versions()) CHECK(one.members == 1);
}

TEST_CASE("a node that joins later gets an earlier one as its partner") {
  Directory directory;
  const Asked a = directory.join("a");
  directory.pass(kWait);
  CHECK(partners_of(a).nodes.empty());
  const Asked b = directory.join("b");
  directory.pass(kWait);
  CHECK(partners_of(b).nodes == Names{"a"});
}

TEST_CASE("the source is not told to ask itself") {
  Directory directory;
  const Asked s = directory.join("s");
  directory.pass(kWait);
  CHECK(partners_of(s) == Partners{});
}

TEST_CASE("only the first nodes may ask the source") {
  Directory directory;
  std::vector<Asked> asked;
  for (std::size_t i = 0; i < 2 * Introductions::kSourceAskers; ++i)
    asked.push_back(directory.join(fmt::format("n{}", i)));
  directory.pass(kWait);
  std::size_t askers = 0;
  for (const Asked& one : asked) askers += partners_of(one).source == "s" ? 1 : 0;
  CHECK(askers == Introductions::kSourceAskers);
}

TEST_CASE("other states of a session are answered at once, and begin none") {
  Directory directory;
  for (const auto state : {Join::State::lives, Join::State::finished, Join::State::leaves})
    CHECK(partners_of(directory.join("a", state)) == Partners{});
  CHECK(directory.owner.versions().empty());
}

TEST_CASE("a node that leaves the swarm or the cluster is no partner of others") {
  for (const bool cluster : {false, true}) {
    CAPTURE(cluster);
    Directory directory;
    directory.join("a");
    directory.pass(kWait);
    if (cluster)
      directory.owner.left("a");
    else
      directory.join("a", Join::State::leaves);
    const Asked b = directory.join("b");
    directory.pass(kWait);
    CHECK(partners_of(b).nodes.empty());
    CHECK(directory.owner.members(version_of(1)) == 1);
  }
}

TEST_CASE("a node that has finished stays a partner, and asks the source no more") {
  Directory directory;
  directory.join("a");
  directory.pass(kWait);
  directory.join("a", Join::State::finished);
  const Asked b = directory.join("b");
  directory.pass(kWait);
  CHECK(partners_of(b) == Partners{{"a"}, "s"});
}

TEST_CASE("a directory node is the clerk of the origin, for the nodes that may ask the source") {
  Directory directory(true);
  std::vector<Asked> asked;
  const Asked with_source = directory.join("s2", Join::State::fetches, 2);
  directory.pass(kWait);
  CHECK(partners_of(with_source) == Partners{{}, "s", true});
  directory.source = "";
  for (std::size_t i = 0; i < Introductions::kSourceAskers + 1; ++i)
    asked.push_back(directory.join(fmt::format("n{}", i)));
  directory.pass(kWait);
  std::size_t clerks = 0;
  for (const Asked& one : asked) {
    CHECK(partners_of(one).source.empty());
    if (partners_of(one).clerk) ++clerks;
  }
  CHECK(clerks == Introductions::kSourceAskers);
  directory.source = "a";
  const Asked publisher = directory.join("a", Join::State::fetches, 3);
  const Asked other = directory.join("b", Join::State::fetches, 3);
  directory.pass(kWait);
  CHECK(partners_of(publisher) == Partners{{"b"}, "", true});
  CHECK(partners_of(other) == Partners{{"a"}, "a", true});
}

TEST_CASE("a directory node without an origin is no clerk") {
  Directory directory;
  directory.source = "";
  const Asked a = directory.join("a");
  directory.pass(kWait);
  CHECK(partners_of(a) == Partners{});
}

TEST_CASE("joins beyond kWaitingMax are refused as busy, until others are answered") {
  Directory directory;
  std::vector<Asked> asked;
  for (std::size_t i = 0; i < SwarmDirectory::kWaitingMax; ++i) {
    asked.push_back(directory.join(fmt::format("n{}", i)));
    REQUIRE(!asked.back()->reply);
  }
  CHECK(error_of(directory.join("late")) == Errc::busy);
  directory.pass(kWait);
  CHECK(partners_of(asked.front()).nodes.size() <= Downloads::kPartnersMax);
  CHECK(!partners_of(asked.back()).nodes.empty());
  const Asked late = directory.join("late");
  directory.pass(kWait);
  CHECK(!partners_of(late).nodes.empty());
}

TEST_CASE("a silent node is forgotten, and a version without nodes") {
  Directory directory;
  directory.join("a");
  directory.join("b");
  directory.pass(kWait);
  for (int i = 0; i < 4; ++i) {
    directory.pass(seconds(20));
    directory.join("a", Join::State::lives);
  }
  CHECK(directory.owner.members(version_of(1)) == 1);
  for (int i = 0; i < 8; ++i) directory.pass(seconds(10));
  CHECK(directory.owner.versions().empty());
  CHECK(!directory.owner.run());
}

TEST_CASE("of too many versions, the one that was silent for longest is forgotten") {
  Directory directory;
  const Asked first = directory.join("a", Join::State::fetches, 1);
  directory.time.pass(milliseconds(1));
  for (std::uint64_t version = 2; version <= SwarmDirectory::kVersionsMax; ++version)
    directory.join("a", Join::State::fetches, version);
  CHECK(!first->reply);
  const Asked last = directory.join("a", Join::State::fetches, SwarmDirectory::kVersionsMax + 1);
  CHECK(error_of(first) == Errc::unreachable);
  CHECK(directory.owner.versions().size() == SwarmDirectory::kVersionsMax);
  CHECK(directory.owner.members(version_of(1)) == 0);
  directory.pass(kWait);
  CHECK(partners_of(last).source == "s");
}

TEST_CASE("a node that joins for 10,000 versions displaces no swarm of others") {
  Directory directory;
  directory.join("a");
  directory.join("b");
  directory.pass(kWait);
  for (std::uint64_t version = 2; version <= 10'000; ++version) {
    directory.join("mallory", Join::State::fetches, version);
    if (version % 1'000 == 0) directory.pass(kWait);
  }
  CHECK(directory.owner.versions().size() == SwarmDirectory::kVersionsMax);
  CHECK(directory.owner.members(version_of(1)) == 2);
  const Asked c = directory.join("c");
  directory.pass(kWait);
  CHECK(partners_of(c).nodes.size() == 2);
}

TEST_CASE("nodes beyond kMembersMax are refused as busy, until silent ones are forgotten") {
  constexpr std::size_t kNames = 1'024;
  Directory directory;
  for (std::uint64_t version = 1; version <= SwarmDirectory::kMembersMax / kNames; ++version) {
    for (std::size_t i = 0; i < kNames; ++i) directory.join(fmt::format("n{}", i), Join::State::fetches, version);
    directory.pass(kWait);
  }
  CHECK(error_of(directory.join("late")) == Errc::busy);
  CHECK(error_of(directory.join("n0", Join::State::fetches, 10'000)) == Errc::busy);
  CHECK(directory.owner.members(version_of(10'000)) == 0);
  CHECK(!directory.join("n0")->reply);  // a member asks again
  directory.join("n1", Join::State::leaves);
  CHECK(!directory.join("late")->reply);
  CHECK(error_of(directory.join("later")) == Errc::busy);
  directory.pass(2 * std::chrono::milliseconds(Introductions::kSilence));
  CHECK(!directory.join("later")->reply);
}

TEST_CASE("a node that does not wait for its partners any more is introduced to nobody") {
  Directory directory;
  const Asked a = directory.join("a");
  const Asked b = directory.join("b");
  a->is_wanted = false;
  directory.owner.unwanted("a");
  directory.owner.unwanted("b");  // it waits all the same
  directory.owner.run();
  CHECK(!b->reply);
  directory.pass(kWait);
  CHECK(partners_of(b).nodes.empty());
  CHECK(directory.owner.members(version_of(1)) == 1);
}

TEST_CASE("a node that joins again while it waits is answered once") {
  Directory directory;
  const Asked first = directory.join("a");
  const Asked second = directory.join("a");
  CHECK(error_of(first) == Errc::unreachable);
  directory.pass(kWait);
  CHECK(partners_of(second).source == "s");
}

TEST_CASE("a directory that has ended refuses joins, and those that wait get no answer") {
  Directory directory;
  const Asked a = directory.join("a");
  directory.owner.end();
  CHECK(error_of(a) == Errc::unreachable);
  CHECK(error_of(directory.join("b")) == Errc::busy);
  const int woken = directory.woken;
  directory.owner.unwanted("a");
  directory.owner.left("a");
  CHECK(directory.woken == woken);
}

}  // namespace weft::testing
