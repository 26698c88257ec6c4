#include "peers/links.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "fakes/manual_time.h"
#include "testing.h"
#include "weft/deadline.h"

namespace weft::testing {
namespace {

using std::chrono::milliseconds;
using Clock = PeerLinks::Clock;

const std::vector<Member> kMembers = {{"a", "host-a", "127.0.0.1:1", "net", 1},
                                      {"b", "host-b", "127.0.0.1:2", "net", 1}};
const std::vector<std::string> kA = {"a"};
const std::vector<std::string> kBoth = {"a", "b"};
const Error kLate{Errc::timed_out, "late"};

PeerLinks links(const TimeSource& time = steady_time()) {
  return PeerLinks([] { return kMembers; }, time);
}

}  // namespace

TEST_CASE("requests to a peer are small until its rate is known, then a part of a second's bytes") {
  PeerLinks of = links();
  const auto first = of.take(kA, {});
  REQUIRE(first);
  CHECK(first->bytes_max == kDigestChunk);
  of.done(first->number, 64U << 20U, milliseconds(1'000), nullptr);
  const auto second = of.take(kA, {});
  REQUIRE(second);
  CHECK(second->bytes_max > kDigestChunk);
  CHECK(second->bytes_max < 32U << 20U);
}

TEST_CASE("differences are requested from peers slower than the coding, and not from peers that coded wrongly") {
  for (const bool is_hardware : {false, true}) {
    PeerLinks of([] { return kMembers; }, steady_time(), [is_hardware](std::string_view) { return !is_hardware; });
    const auto effort = [&of] {
      const auto choice = of.take(kA, {});
      of.done(choice->number, 0, milliseconds(1), nullptr);
      return choice->effort;
    };
    const auto moves = [&of](std::uint64_t bytes_a_ms) {
      for (int i = 0; i < 50; ++i) of.wire_moved(0, bytes_a_ms * 100, milliseconds(100));
    };
    CHECK(effort() == (is_hardware ? CodingEffort::none : CodingEffort::sparse));
    of.wire_moved(0, 100, milliseconds(100));  // too few bytes for an estimate
    CHECK(effort() == (is_hardware ? CodingEffort::none : CodingEffort::sparse));
    moves(12'000'000);
    CHECK(effort() == (is_hardware ? CodingEffort::none : CodingEffort::sparse));
    moves(1'000'000);
    CHECK(effort() == CodingEffort::sparse);
    moves(120'000);
    CHECK(effort() == CodingEffort::dense);
    of.plain_only(0);
    CHECK(effort() == CodingEffort::none);
  }
}

TEST_CASE("a read that is held back takes no place of another one, and tells the rate if its time is the peer's") {
  PeerLinks of = links();
  std::vector<PeerLinks::Choice> held;
  for (int i = 0; i < 10; ++i) held.push_back(*of.take(kA, {}, PeerLinks::Size::held_read));
  CHECK(of.readiness(kA) == Readiness::ready);
  std::vector<PeerLinks::Choice> reads;
  while (const auto choice = of.take(kA, {})) reads.push_back(*choice);
  CHECK(reads.size() == 3);
  for (const auto& one : reads) of.done(one.number, 0, milliseconds(1), nullptr, one.size);
  for (int i = 0; i < 5; ++i) of.done(0, 4U << 20U, Clock::duration{}, nullptr, held[i].size);
  CHECK(of.take(kA, {})->bytes_max == kDigestChunk);  // their time was that of a rate
  for (int i = 5; i < 10; ++i) of.done(0, 4U << 20U, milliseconds(40), nullptr, held[i].size);
  CHECK(of.take(kA, {})->bytes_max > kDigestChunk);
}

TEST_CASE("a peer has few reads at a time, and answers questions besides") {
  PeerLinks of = links();
  std::vector<std::uint32_t> taken;
  while (const auto choice = of.take(kA, {})) taken.push_back(choice->number);
  CHECK(taken.size() == 3);
  CHECK(of.readiness(kA) == Readiness::busy);
  CHECK(of.take(kA, {}, PeerLinks::Size::question));
  of.done(taken[0], 1, milliseconds(1), nullptr);
  of.done(taken[0], 1, milliseconds(1), nullptr);
  CHECK(of.take(kA, {}));
}

TEST_CASE("a fast peer gets more requests than it sends at one time") {
  PeerLinks of = links();
  const auto first = of.take(kA, {});
  REQUIRE(first);
  of.done(first->number, 1U << 30U, milliseconds(1'000), nullptr);
  unsigned asked = 0;
  while (of.take(kA, {})) ++asked;
  CHECK(asked == 5);
  const std::uint32_t peer = first->number;
  struct Held {
    PeerLinks::Turn turn;
  };
  std::unique_ptr<Held> one(new Held{of.turn(peer)});
  const auto two = of.turn(peer);
  const auto three = of.turn(peer);
  std::atomic<bool> has_turn = false;
  std::atomic<bool> ended = false;
  std::thread fourth([&] {
    const auto turn = of.turn(peer);
    has_turn = true;
    while (!ended) std::this_thread::sleep_for(milliseconds(1));
  });
  one.reset();
  while (!has_turn) std::this_thread::sleep_for(milliseconds(1));
  const auto fifth = of.turn(peer);  // granted although no turn ended
  ended = true;
  fourth.join();
}

TEST_CASE("a peer's speed is that of its latest reads") {
  PeerLinks of = links();
  for (int i = 0; i < 20; ++i) {
    const auto one = of.take(kA, {});
    REQUIRE(one);
    of.done(one->number, 1U << 20U, milliseconds(i == 0 ? 1 : 40), nullptr);
  }
  unsigned asked = 0;
  while (of.take(kA, {})) ++asked;
  CHECK(asked == 3);
}

TEST_CASE("the candidates are described with their costs, reads and rates, without those that were tried") {
  PeerLinks of = links();
  CHECK(of.describe(kBoth, {}) == "a: cost 1, 0 reads, 0.0 MB/s; b: cost 1, 0 reads, 0.0 MB/s");
  const auto taken = of.take(kA, {});
  CHECK(of.describe(kBoth, {}).starts_with("a: cost 2, 1 reads"));
  CHECK(of.describe(kBoth, std::vector{taken->number}) == "b: cost 1, 0 reads, 0.0 MB/s");
  CHECK(of.describe({}, {}).empty());
}

TEST_CASE("a silent peer is used only if there is no other") {
  PeerLinks of = links();
  const auto asked = of.take(kA, {});
  REQUIRE(asked);
  of.done(asked->number, 0, milliseconds(10), &kLate);
  CHECK(of.readiness(kA) == Readiness::lacking);
  CHECK(of.take(kBoth, {})->node == "b");
  CHECK(of.take(kA, {})->node == "a");
  const std::uint32_t other = of.take(kBoth, {})->number;
  CHECK(of.take(kBoth, std::span(&other, 1))->node == "a");
}

TEST_CASE("a peer that sends to one read is not silent for another") {
  PeerLinks of = links();
  const auto begin = Clock::now();
  const auto slow = of.take(kA, {});
  REQUIRE(slow);
  of.moved(slow->number);
  CHECK(of.gave_since(slow->node, begin));
  CHECK_FALSE(of.gave_since(slow->node, Clock::now()));
  of.done(slow->number, 0, Clock::now() - begin + milliseconds(1), &kLate);
  CHECK(of.readiness(kA) == Readiness::ready);
}

TEST_CASE("a busy peer is waited for only while it sends bytes") {
  PeerLinks of = links();
  const auto begin = Clock::now();
  const auto asked = of.take(kA, {});
  REQUIRE(asked);
  CHECK(of.busy(kA, {}).any);
  CHECK(of.busy(kA, {}).moved_at < begin);
  of.moved(asked->number);
  CHECK(of.busy(kA, {}).moved_at >= begin);
  CHECK_FALSE(of.busy(kA, std::span(&asked->number, 1)).any);
  of.done(asked->number, 0, milliseconds(1), nullptr);
}

TEST_CASE("the peer with fewer reads is asked, and a busy one is not") {
  PeerLinks of = links();
  REQUIRE(of.take(kA, {}));
  const auto peer = of.take(kBoth, {});
  REQUIRE(peer);
  CHECK(peer->node == "b");
  of.done(peer->number, 0, milliseconds(1), nullptr);
  while (const auto more = of.take(kA, {})) CHECK(more->node == "a");
  CHECK(of.readiness(kA) == Readiness::busy);
  CHECK(of.readiness(kBoth) == Readiness::ready);
  const auto other = of.take(kBoth, {});
  REQUIRE(other);
  CHECK(other->node == "b");
}

TEST_CASE("a peer that answers that it is overloaded is asked nothing for a moment") {
  ManualTime time;
  PeerLinks of = links(time);
  const Error overloaded{Errc::busy, "too many calls"};
  const auto asked = of.take(kA, {});
  REQUIRE(asked);
  of.done(asked->number, 0, milliseconds(1), &overloaded);
  CHECK(of.readiness(kA) == Readiness::busy);
  CHECK(of.busy(kA, {}).any);
  for (const auto size : {PeerLinks::Size::read, PeerLinks::Size::question}) CHECK_FALSE(of.take(kA, {}, size));
  CHECK(of.take(kBoth, {})->node == "b");
  time.pass(milliseconds(50));
  CHECK(of.readiness(kA) == Readiness::ready);
  CHECK(of.take(kA, {}));
}

TEST_CASE("peers of similar speed are all asked") {
  PeerLinks of = links();
  std::set<std::string> asked;
  for (const std::uint64_t bytes : {10U << 20U, 20U << 20U}) {
    const auto peer = of.take(bytes > (15U << 20U) ? std::span(kBoth).first(1) : std::span(kBoth).last(1), {});
    of.done(peer->number, bytes, milliseconds(1'000), nullptr);
  }
  for (int i = 0; i < 200; ++i) {
    const auto peer = of.take(kBoth, {});
    asked.insert(peer->node);
    of.done(peer->number, 0, milliseconds(1), nullptr);
  }
  CHECK(asked.size() == 2);
}

TEST_CASE("a peer that is much slower than another one is not asked while that one has few reads") {
  PeerLinks of = links();
  of.done(of.take(kA, {})->number, 1'000, milliseconds(1'000), nullptr);
  for (int reads = 0; reads < 3; ++reads) CHECK(of.take(kBoth, {})->node == "b");
  CHECK(of.take(kBoth, {})->node == "a");
}

TEST_CASE("a peer that lacks bytes is not penalised") {
  PeerLinks of = links();
  const Error lacks{Errc::not_found, "not here"};
  const auto asked = of.take(kA, {});
  REQUIRE(asked);
  of.done(asked->number, 0, milliseconds(1), &lacks);
  CHECK(of.readiness(kA) == Readiness::ready);
  of.refuted(asked->number);
  CHECK(of.readiness(kA) == Readiness::lacking);
}

TEST_CASE("a node that left the cluster is silent since it was last seen there") {
  ManualTime time;
  std::vector<Member> members = kMembers;
  PeerLinks of([&members] { return members; }, time);
  CHECK(of.nodes().size() == 2);
  CHECK_FALSE(of.has_left("a"));
  CHECK_FALSE(of.has_left("c"));  // was never there
  members.erase(members.begin());
  time.pass(milliseconds(4'000));
  CHECK(of.has_left("a"));
  CHECK(of.silent_for("a") == milliseconds(4'000));
  CHECK(of.silent_for("b") == milliseconds(0));
  members = kMembers;
  time.pass(milliseconds(1'000));
  CHECK_FALSE(of.has_left("a"));
  CHECK(of.silent_for("a") == milliseconds(0));
}

TEST_CASE("the silence of a peer ends with any answer, with a restart, and if nobody has asked it for long") {
  ManualTime time;
  std::vector<Member> members = kMembers;
  PeerLinks of([&members] { return members; }, time);
  const auto ask = [&](milliseconds took, const Error* failure) {
    const auto asked = of.take(kA, {});
    REQUIRE(asked);
    time.pass(took);
    of.done(asked->number, 0, took, failure);
  };
  ask(milliseconds(3'000), &kLate);
  ask(milliseconds(3'000), &kLate);
  CHECK(of.silent_for("a") == milliseconds(6'000));
  SUBCASE("any answer") {
    const Error lacks{Errc::not_found, "not here"};
    ask(milliseconds(1), &lacks);
    CHECK(of.silent_for("a") == milliseconds(0));
  }
  SUBCASE("a caller that gives up is no answer") {
    const Error ends{Errc::cancelled, "no longer wanted"};
    ask(milliseconds(0), &ends);
    CHECK(of.silent_for("a") == milliseconds(6'000));
  }
  SUBCASE("a restart") {
    members[0].address = "127.0.0.1:3";
    time.pass(milliseconds(1'000));
    CHECK(of.silent_for("a") == milliseconds(0));
  }
  SUBCASE("a restart, while a call waits for the daemon before") {
    const auto asked = of.take(kA, {});
    members[0].address = "127.0.0.1:3";
    time.pass(milliseconds(1'000));
    CHECK(of.silent_for("a") == milliseconds(0));
    of.done(asked->number, 0, milliseconds(1'000), &kLate);
    CHECK(of.silent_for("a") == milliseconds(0));
    CHECK(of.readiness(kA) == Readiness::lacking);  // it rests after the calls that failed before
  }
  SUBCASE("long ago") {
    time.pass(kSilenceMax + milliseconds(1));
    ask(milliseconds(2'000), &kLate);
    CHECK(of.silent_for("a") == milliseconds(2'000));
  }
}

}  // namespace weft::testing
