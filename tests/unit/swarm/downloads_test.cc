#include "swarm/downloads.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "unit/swarm/swarm.h"

namespace weft::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// A receiver, and its clock.
struct Receiver {
  explicit Receiver(std::uint32_t units, std::uint64_t seed = 1)
      : Receiver(UnitSet(units), UnitSet::full(units), seed) {}
  Receiver(const UnitSet& has, const UnitSet& wanted, std::uint64_t seed = 1) : downloads(has, wanted, seed, kStart) {}

  // All wants that are sent now, by partner.
  std::map<SwarmNode, std::size_t> wants() {
    std::map<SwarmNode, std::size_t> sent;
    while (const auto want = downloads.next(now)) ++sent[want->node];
    return sent;
  }
  bool offered(SwarmNode node, std::optional<std::uint32_t> unit) { return downloads.offered(node, unit, now); }
  // A want of the node, its offer and the read of the unit, at once. The node may have a want open already.
  void receive(SwarmNode node, std::uint32_t unit) {
    REQUIRE(offered(node, unit));
    downloads.arrived(node, unit, now);
  }

  Downloads downloads;
  SwarmTime now = kStart;
};

using Wants = std::map<SwarmNode, std::size_t>;

}  // namespace

TEST_CASE("kWantsOpen wants are spread evenly over the partners") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const std::size_t partners : {1U, 2U, 3U, 4U, 5U, 7U, 12U, 13U}) {
      CAPTURE(seed);
      CAPTURE(partners);
      Receiver receiver(100, seed);
      for (SwarmNode node = 0; node < partners; ++node) receiver.downloads.meet(node, receiver.now);
      const Wants wants = receiver.wants();
      std::size_t all = 0;
      for (const auto& [node, count] : wants) {
        all += count;
        CHECK((count - 1) * partners < kWantsOpen);
        CHECK((count + 1) * partners > kWantsOpen);
      }
      CHECK(all == kWantsOpen);
      CHECK(wants.size() == std::min(partners, kWantsOpen));
    }
  }
}

TEST_CASE("the extra wants go to random partners") {
  std::set<SwarmNode> first;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Receiver receiver(100, seed);
    for (SwarmNode node = 0; node < 5; ++node) receiver.downloads.meet(node, receiver.now);
    first.insert(receiver.downloads.next(receiver.now)->node);
  }
  CHECK(first.size() == 5);
}

TEST_CASE("a want stays open until its read ends, and the next one goes to the same partner") {
  Receiver receiver(100);
  receiver.downloads.meet(1, receiver.now);
  receiver.downloads.meet(2, receiver.now);
  CHECK(receiver.wants() == Wants{{1, 6}, {2, 6}});
  REQUIRE(receiver.offered(1, 30));
  CHECK(receiver.wants().empty());
  CHECK(receiver.downloads.taken().has(30));
  CHECK_FALSE(receiver.downloads.has().has(30));
  receiver.downloads.arrived(1, 30, receiver.now);
  CHECK(receiver.downloads.has().has(30));
  CHECK(receiver.wants() == Wants{{1, 1}});
}

TEST_CASE("a unit that the node has, was promised, does not want or that does not exist is declined") {
  Receiver receiver(set_of(10, {0}), set_of(10, {0, 1, 2}));
  receiver.downloads.meet(1, receiver.now);
  receiver.downloads.meet(2, receiver.now);
  CHECK(receiver.wants() == Wants{{1, 6}, {2, 6}});
  CHECK(receiver.offered(1, 1));
  CHECK_FALSE(receiver.offered(1, 0));
  CHECK_FALSE(receiver.offered(2, 1));
  CHECK_FALSE(receiver.offered(2, 3));
  CHECK(receiver.downloads.declined() == 3);
  CHECK(receiver.wants() == Wants{{1, 1}, {2, 2}});  // the partners are asked again at once
  CHECK_FALSE(receiver.offered(2, 10));
  CHECK_FALSE(receiver.offered(2, 4'000'000'000U));
  CHECK(receiver.downloads.declined() == 5);
  CHECK(receiver.wants() == Wants{{1, 2}});  // a partner that offers such a unit waits
  CHECK(receiver.downloads.taken() == [] {
    UnitSet taken = UnitSet::full(10);
    taken.remove(2);
    return taken;
  }());
}

TEST_CASE("a partner that offers units that are not lacking, again and again, is asked less often") {
  Receiver receiver(100);
  receiver.downloads.meet(1, receiver.now);
  std::size_t open = receiver.wants()[1];
  receiver.receive(1, 7);
  --open;
  std::size_t declined = 0;
  for (int i = 0; i < 10'000; ++i) {  // one second
    for (const auto& [node, wants] : receiver.wants()) open += wants;
    for (; open > 0; --open, ++declined) REQUIRE_FALSE(receiver.offered(1, 7));
    receiver.now += std::chrono::microseconds(100);
  }
  CHECK(declined <= Downloads::kDeclinedMax + 12 * kWantsOpen);
  receiver.now += Downloads::kAskAgain;
  CHECK(receiver.wants()[1] >= kWantsOpen);
  CHECK(receiver.offered(1, 8));  // it is trusted again
  CHECK_FALSE(receiver.offered(1, 7));
  CHECK(receiver.wants() == Wants{{1, 1}});
}

TEST_CASE("a failed read makes the unit lacking again, and its partner is asked again later") {
  Receiver receiver(10);
  receiver.downloads.meet(1, receiver.now);
  CHECK(receiver.wants() == Wants{{1, 12}});
  CHECK(receiver.offered(1, 4));
  receiver.downloads.failed(1, 4, receiver.now);
  CHECK_FALSE(receiver.downloads.taken().has(4));
  CHECK(receiver.wants().empty());
  CHECK(receiver.offered(1, 4));
  receiver.now += Downloads::kAskFailedAgain - nanoseconds(1);
  CHECK(receiver.wants().empty());
  receiver.now += nanoseconds(1);
  CHECK(receiver.wants() == Wants{{1, 1}});
}

TEST_CASE("a second failure of one read changes nothing") {
  Receiver receiver(10);
  receiver.downloads.meet(1, receiver.now);
  receiver.downloads.meet(2, receiver.now);
  receiver.wants();
  CHECK(receiver.offered(1, 4));
  receiver.downloads.failed(1, 4, receiver.now);
  CHECK(receiver.offered(2, 4));
  receiver.downloads.failed(1, 4, receiver.now);
  CHECK(receiver.downloads.taken().has(4));
  CHECK_FALSE(receiver.offered(1, 4));
}

TEST_CASE("a unit that came by another way is not read again") {
  Receiver receiver(3);
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  CHECK(receiver.offered(1, 0));
  receiver.downloads.add(0);
  receiver.downloads.failed(1, 0, receiver.now);
  CHECK(receiver.downloads.taken().has(0));
  receiver.downloads.add(1);
  receiver.downloads.add(1);
  CHECK_FALSE(receiver.offered(1, 1));
  CHECK_FALSE(receiver.downloads.is_done());
  receiver.downloads.add(2);
  receiver.downloads.add(3);
  CHECK(receiver.downloads.is_done());
  CHECK(receiver.downloads.has().all());
}

TEST_CASE("a receiver is done when it has all that it wants") {
  Receiver receiver(set_of(10, {0, 9}), set_of(10, {0, 1, 2}));
  CHECK_FALSE(receiver.downloads.is_done());
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  receiver.receive(1, 1);
  CHECK_FALSE(receiver.downloads.is_done());
  CHECK(receiver.offered(1, 2));
  CHECK_FALSE(receiver.downloads.is_done());
  CHECK(receiver.wants().empty());
  receiver.downloads.arrived(1, 2, receiver.now);
  CHECK(receiver.downloads.is_done());
  CHECK(receiver.downloads.has() == set_of(10, {0, 1, 2, 9}));
  CHECK(receiver.wants() == Wants{{1, 1}});  // it ends its session
  CHECK(receiver.downloads.taken().all());
  CHECK(receiver.wants().empty());
  CHECK_FALSE(receiver.downloads.due(receiver.now));
  receiver.now += seconds(10);
  CHECK_FALSE(receiver.downloads.is_hungry(receiver.now));
  CHECK_FALSE(receiver.downloads.joins_again(receiver.now));
}

TEST_CASE("nothing is wanted of a version that is here, or of one without units") {
  for (Receiver receiver : {Receiver(UnitSet::full(10), UnitSet::full(10)), Receiver(0)}) {
    CHECK(receiver.downloads.is_done());
    receiver.downloads.meet(1, receiver.now);
    CHECK(receiver.wants().empty());
  }
}

TEST_CASE("more units may be wanted later") {
  Receiver receiver(UnitSet(10), set_of(10, {1}));
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  CHECK_FALSE(receiver.offered(1, 5));
  receiver.receive(1, 1);
  CHECK(receiver.downloads.is_done());
  receiver.now += seconds(100);
  receiver.downloads.want(set_of(10, {5}), receiver.now);
  CHECK_FALSE(receiver.downloads.is_done());
  CHECK_FALSE(receiver.downloads.is_hungry(receiver.now));  // it lacked nothing meanwhile
  receiver.now += Hunger::kHungryAfter;
  CHECK(receiver.downloads.is_hungry(receiver.now));
  receiver.receive(1, 5);
  CHECK(receiver.downloads.is_done());
}

TEST_CASE("a unit that is wanted again was lost") {
  Receiver receiver(set_of(10, {0}), set_of(10, {0, 1}));
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  receiver.downloads.want(set_of(10, {1}), receiver.now);  // not here yet
  receiver.receive(1, 1);
  REQUIRE(receiver.downloads.is_done());
  receiver.downloads.want(set_of(10, {0, 1}), receiver.now);
  CHECK_FALSE(receiver.downloads.is_done());
  CHECK(receiver.downloads.has() == UnitSet(10));
  CHECK_FALSE(receiver.downloads.taken().has(0));
  receiver.receive(1, 0);
  receiver.receive(1, 1);
  CHECK(receiver.downloads.is_done());
}

TEST_CASE("a receiver that is done ends its session once at sources, and at partners that hold wants of it") {
  Receiver receiver(10);
  for (SwarmNode node = 1; node <= 3; ++node) receiver.downloads.meet(node, receiver.now);
  receiver.downloads.meet_source(7, receiver.now);
  receiver.downloads.meet_source(8, receiver.now);
  const Wants open = receiver.wants();
  std::uint32_t unit = 0;
  for (const SwarmNode node : {1, 7})
    for (std::size_t i = 0; i < open.at(node); ++i) receiver.receive(node, unit++);
  for (; unit < 10; ++unit) receiver.downloads.add(unit);
  REQUIRE(receiver.downloads.is_done());
  CHECK(receiver.wants() == Wants{{2, 1}, {3, 1}, {7, 1}, {8, 1}});
  CHECK(receiver.wants().empty());
}

TEST_CASE("a receiver that wants nothing any more ends its sessions") {
  Receiver receiver(10);
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  receiver.downloads.abandon();
  CHECK(receiver.downloads.is_done());
  CHECK(receiver.wants() == Wants{{1, 1}});
  CHECK(receiver.downloads.taken().all());
}

TEST_CASE("a receiver is hungry kHungryAfter after it began, and after its last unit") {
  Receiver receiver(10);
  receiver.downloads.meet(1, receiver.now);
  CHECK(receiver.downloads.due(receiver.now) == kStart + Hunger::kHungryAfter);
  receiver.now += Hunger::kHungryAfter - nanoseconds(1);
  CHECK_FALSE(receiver.downloads.is_hungry(receiver.now));
  receiver.now += nanoseconds(1);
  CHECK(receiver.downloads.is_hungry(receiver.now));
  receiver.wants();
  receiver.receive(1, 0);
  CHECK_FALSE(receiver.downloads.is_hungry(receiver.now));
  receiver.now += Hunger::kHungryAfter;
  CHECK(receiver.downloads.is_hungry(receiver.now));
}

TEST_CASE("a receiver of slow links is hungry after kHungryGaps usual gaps") {
  Receiver receiver(200);
  receiver.downloads.meet(1, receiver.now);
  for (std::uint32_t unit = 0; unit < 100; ++unit) {
    receiver.wants();
    receiver.now += milliseconds(50);
    receiver.receive(1, unit);
  }
  receiver.now += milliseconds(398);
  CHECK_FALSE(receiver.downloads.is_hungry(receiver.now));
  receiver.now += milliseconds(3);
  CHECK(receiver.downloads.is_hungry(receiver.now));
}

TEST_CASE("a long stall hardly delays the next hunger") {
  Receiver receiver(10);
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  receiver.now += seconds(600);
  receiver.receive(1, 0);
  receiver.now += Hunger::kGapMax;
  CHECK(receiver.downloads.is_hungry(receiver.now));
}

TEST_CASE("a receiver whose units are all promised is not hungry") {
  Receiver receiver(2);
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  CHECK(receiver.offered(1, 0));
  CHECK(receiver.offered(1, 1));
  receiver.now += seconds(10);
  CHECK_FALSE(receiver.downloads.is_hungry(receiver.now));
  CHECK_FALSE(receiver.downloads.joins_again(receiver.now));
  CHECK_FALSE(receiver.downloads.due(receiver.now));
  receiver.downloads.failed(1, 1, receiver.now);
  CHECK(receiver.downloads.is_hungry(receiver.now));
}

TEST_CASE("units that are wanted after a hungry spell begin a new one") {
  Receiver receiver(UnitSet(10), set_of(10, {1}));
  receiver.downloads.meet(1, receiver.now);
  receiver.now += Hunger::kHungryAfter;
  receiver.wants();
  CHECK(receiver.downloads.joins_again(receiver.now));
  CHECK(receiver.offered(1, 1));
  receiver.now += seconds(10);
  receiver.downloads.want(set_of(10, {2}), receiver.now);
  CHECK_FALSE(receiver.downloads.joins_again(receiver.now));
  CHECK(receiver.downloads.due(receiver.now) == receiver.now + Hunger::kHungryAfter);
  CHECK(receiver.wants().empty());  // 11 wait, and a read goes on
  receiver.now += Hunger::kHungryAfter;
  CHECK(receiver.wants() == Wants{{1, 1}});
}

TEST_CASE("a hungry receiver tells each partner so by one want") {
  Receiver receiver(100);
  for (SwarmNode node = 1; node <= 3; ++node) receiver.downloads.meet(node, receiver.now);
  while (const auto want = receiver.downloads.next(receiver.now)) CHECK_FALSE(want->hungry);
  receiver.now += Hunger::kHungryAfter;
  Wants sent;
  while (const auto want = receiver.downloads.next(receiver.now)) {
    CHECK(want->hungry);
    ++sent[want->node];
  }
  CHECK(sent == Wants{{1, 1}, {2, 1}, {3, 1}});
  receiver.now += milliseconds(10);
  CHECK(receiver.wants().empty());
  // After a unit, the partners do not know of the next spell.
  receiver.receive(1, 0);
  receiver.receive(1, 1);
  receiver.receive(2, 2);
  CHECK(receiver.wants().empty());  // 12 are open
  receiver.now += Hunger::kHungryAfter;
  CHECK(receiver.wants() == Wants{{1, 1}, {2, 1}, {3, 1}});
}

TEST_CASE("spells of hunger do not add wants without a bound") {
  Receiver receiver(1'000);
  for (SwarmNode node = 1; node <= 3; ++node) receiver.downloads.meet(node, receiver.now);
  std::size_t open = 0;
  for (std::uint32_t unit = 0; unit < 100; ++unit) {
    for (const auto& [node, count] : receiver.wants()) open += count;
    CHECK(open <= kWantsOpen + 3);
    while (!receiver.downloads.is_hungry(receiver.now)) receiver.now += milliseconds(100);
    for (const auto& [node, count] : receiver.wants()) open += count;
    CHECK(open <= kWantsOpen + 3);
    receiver.downloads.add(unit);
  }
  CHECK(open == kWantsOpen + 3);
}

TEST_CASE("a hungry receiver asks a new partner although its other partners hold all wants") {
  Receiver receiver(100);
  receiver.downloads.meet(1, receiver.now);
  CHECK(receiver.wants() == Wants{{1, 12}});
  receiver.downloads.meet(2, receiver.now);
  CHECK(receiver.wants().empty());
  receiver.now += Hunger::kHungryAfter;
  CHECK(receiver.wants() == Wants{{1, 1}, {2, 1}});
}

TEST_CASE("units of the source do not end hunger, and are no usual gap") {
  Receiver receiver(100);
  receiver.downloads.meet(1, receiver.now);
  receiver.downloads.meet_source(9, receiver.now);
  receiver.wants();
  for (std::uint32_t unit = 0; unit < 5; ++unit) {
    receiver.now += milliseconds(90);
    receiver.receive(9, unit);
  }
  CHECK(receiver.downloads.is_hungry(receiver.now));
  CHECK(receiver.downloads.joins_again(receiver.now));
  bool hungry = false;
  while (const auto want = receiver.downloads.next(receiver.now)) hungry = want->hungry;
  CHECK(hungry);
  receiver.receive(1, 5);
  CHECK_FALSE(receiver.downloads.is_hungry(receiver.now));
}

TEST_CASE("a partner may prove to be the source") {
  Receiver receiver(100);
  receiver.downloads.meet(9, receiver.now);
  receiver.wants();
  receiver.downloads.meet_source(9, receiver.now);
  CHECK(receiver.downloads.partners() == 1);
  receiver.now += Hunger::kHungryAfter;
  receiver.receive(9, 5);
  CHECK(receiver.downloads.is_hungry(receiver.now));
}

TEST_CASE("a hungry receiver joins again at longer and longer intervals") {
  Receiver receiver(100);
  CHECK_FALSE(receiver.downloads.joins_again(receiver.now));
  receiver.now += Hunger::kHungryAfter;
  milliseconds interval = Hunger::kJoinAgain;
  for (int i = 0; i < 8; ++i) {
    CHECK(receiver.downloads.joins_again(receiver.now));
    CHECK_FALSE(receiver.downloads.joins_again(receiver.now));
    REQUIRE(receiver.downloads.due(receiver.now) == receiver.now + interval);
    receiver.now += interval - nanoseconds(1);
    CHECK_FALSE(receiver.downloads.joins_again(receiver.now));
    receiver.now += nanoseconds(1);
    interval = std::min(interval * 2, Hunger::kJoinAgainMax);
  }
  CHECK(interval == Hunger::kJoinAgainMax);
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  receiver.receive(1, 0);
  CHECK_FALSE(receiver.downloads.joins_again(receiver.now));
  receiver.now += Hunger::kGapMax;
  CHECK(receiver.downloads.joins_again(receiver.now));
  CHECK(receiver.downloads.due(receiver.now) == receiver.now + Hunger::kJoinAgain);
}

TEST_CASE("a partner that answered without a unit is asked again after kAskAgain") {
  Receiver receiver(100);
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  receiver.downloads.add(0);
  CHECK_FALSE(receiver.offered(1, std::nullopt));
  CHECK(receiver.downloads.declined() == 0);
  CHECK(receiver.wants().empty());
  CHECK(receiver.downloads.due(receiver.now) == receiver.now + Downloads::kAskAgain);
  receiver.now += Downloads::kAskAgain - nanoseconds(1);
  CHECK(receiver.wants().empty());
  receiver.now += nanoseconds(1);
  CHECK(receiver.wants() == Wants{{1, 1}});
}

TEST_CASE("a receiver that lacked no unit and wants others asks its partners at once") {
  Receiver receiver(UnitSet(10), set_of(10, {1}));
  receiver.downloads.meet(1, receiver.now);
  REQUIRE(receiver.wants() == Wants{{1, kWantsOpen}});
  receiver.receive(1, 1);
  REQUIRE(receiver.wants() == Wants{{1, 1}});  // it ends its session
  receiver.downloads.want(set_of(10, {2}), receiver.now);
  CHECK(receiver.wants().empty());  // kWantsOpen are open
  for (const std::size_t answers : {kWantsOpen / 2, kWantsOpen / 2}) {
    for (std::size_t i = 0; i < answers; ++i) CHECK_FALSE(receiver.offered(1, std::nullopt));
    CHECK(receiver.wants() == Wants{{1, answers}});
  }
  CHECK_FALSE(receiver.offered(1, std::nullopt));  // to a want of the new session
  CHECK(receiver.wants().empty());
  receiver.now += Downloads::kAskAgain;
  CHECK_FALSE(receiver.wants().empty());
}

TEST_CASE("a partner whose last want of a session failed is asked again after kAskFailedAgain") {
  Receiver receiver(UnitSet(10), set_of(10, {1}));
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  receiver.receive(1, 1);
  receiver.wants();
  receiver.downloads.want(set_of(10, {2}), receiver.now);
  for (std::size_t i = 0; i < kWantsOpen; ++i) receiver.downloads.unanswered(1, receiver.now);
  receiver.now += Downloads::kAskFailedAgain - nanoseconds(1);
  CHECK(receiver.wants().empty());
  receiver.now += nanoseconds(1);
  CHECK(receiver.wants() == Wants{{1, kWantsOpen}});
  CHECK_FALSE(receiver.offered(1, std::nullopt));  // no want of the ended session is open
  CHECK(receiver.wants().empty());
}

TEST_CASE("a receiver is due when a partner may be asked again") {
  Receiver receiver(100);
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  CHECK_FALSE(receiver.offered(1, std::nullopt));
  receiver.now += milliseconds(50);
  receiver.receive(1, 0);
  CHECK(receiver.downloads.due(receiver.now) == kStart + Downloads::kAskAgain);
  receiver.downloads.drop(1);
  CHECK(receiver.downloads.due(receiver.now) == receiver.now + Hunger::kHungryAfter);
}

TEST_CASE("a partner whose call failed is asked again after kAskFailedAgain") {
  Receiver receiver(100);
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  receiver.downloads.unanswered(1, receiver.now);
  CHECK_FALSE(receiver.offered(1, std::nullopt));  // the shorter wait does not replace the longer one
  receiver.now += Downloads::kAskFailedAgain - nanoseconds(1);
  CHECK(receiver.wants().empty());
  CHECK(receiver.downloads.due(receiver.now) <= receiver.now + nanoseconds(1));
  receiver.now += nanoseconds(1);
  CHECK(receiver.wants() == Wants{{1, 2}});
}

TEST_CASE("a partner that has left gets no wants until it is met again") {
  Receiver receiver(100);
  receiver.downloads.meet(1, receiver.now);
  CHECK(receiver.wants() == Wants{{1, 12}});
  CHECK(receiver.offered(1, 7));
  receiver.downloads.drop(1);
  receiver.downloads.meet(2, receiver.now);
  CHECK_FALSE(receiver.offered(1, 8));  // cannot be read
  CHECK_FALSE(receiver.downloads.taken().has(8));
  receiver.downloads.failed(1, 7, receiver.now);
  CHECK_FALSE(receiver.downloads.taken().has(7));
  for (int i = 0; i < 10; ++i) receiver.downloads.unanswered(1, receiver.now);
  CHECK(receiver.downloads.partners() == 1);
  CHECK(receiver.wants() == Wants{{2, 12}});
  receiver.downloads.meet(1, receiver.now);
  CHECK(receiver.downloads.partners() == 2);
  receiver.now += Hunger::kHungryAfter;
  CHECK(receiver.wants() == Wants{{1, 1}, {2, 1}});
}

TEST_CASE("a partner may be met again before its last wants have ended") {
  Receiver receiver(100);
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  receiver.downloads.unanswered(1, receiver.now);
  receiver.downloads.drop(1);
  CHECK(receiver.wants().empty());
  receiver.downloads.meet(1, receiver.now);
  CHECK(receiver.wants() == Wants{{1, 1}});
}

TEST_CASE("a node that sent wrong bytes gets no wants again, and its offers are declined") {
  Receiver receiver(100);
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  CHECK(receiver.offered(1, 7));
  receiver.downloads.failed(1, 7, receiver.now);
  CHECK(receiver.downloads.ban(1));
  CHECK_FALSE(receiver.downloads.ban(1));
  CHECK_FALSE(receiver.offered(1, 8));
  CHECK(receiver.downloads.declined() == 1);
  for (int i = 0; i < 10; ++i) receiver.downloads.unanswered(1, receiver.now);
  receiver.downloads.drop(1);
  receiver.now += seconds(10);
  receiver.downloads.meet(1, receiver.now);
  CHECK(receiver.wants().empty());
  CHECK(receiver.downloads.partners() == 0);
  receiver.downloads.meet(2, receiver.now);
  CHECK(receiver.wants().size() == 1);
}

TEST_CASE("a node that left before its bytes proved wrong stays banned") {
  Receiver receiver(100);
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  CHECK(receiver.offered(1, 7));
  receiver.downloads.drop(1);
  for (int i = 0; i < 11; ++i) receiver.downloads.unanswered(1, receiver.now);
  receiver.downloads.ban(1);
  receiver.downloads.failed(1, 7, receiver.now);
  receiver.downloads.ban(2);  // not met yet
  receiver.now += seconds(10);
  receiver.downloads.meet(1, receiver.now);
  receiver.downloads.meet(2, receiver.now);
  CHECK(receiver.wants().empty());
}

TEST_CASE("a directory that names thousands of partners is believed up to kPartnersMax") {
  Receiver receiver(100);
  for (SwarmNode node = 0; node < 10'000; ++node) receiver.downloads.meet(node, receiver.now);
  CHECK(receiver.downloads.partners() == Downloads::kPartnersMax);
  receiver.downloads.meet_source(20'000, receiver.now);
  CHECK(receiver.downloads.partners() == Downloads::kPartnersMax + 1);
  for (SwarmNode node = 0; node < Downloads::kPartnersMax; ++node) receiver.downloads.drop(node);
  receiver.downloads.drop(20'000);
  CHECK(receiver.downloads.partners() == 0);
  receiver.downloads.meet(9'999, receiver.now);
  CHECK(receiver.wants() == Wants{{9'999, 12}});
}

TEST_CASE("a directory that names ever new sources is believed up to kSourcesMax") {
  Receiver receiver(100);
  for (SwarmNode node = 0; node < 10'000; ++node) receiver.downloads.meet_source(node, receiver.now);
  CHECK(receiver.downloads.partners() == Downloads::kSourcesMax);
  receiver.downloads.meet(20'000, receiver.now);
  receiver.downloads.meet_source(20'000, receiver.now);  // a partner that proves to be the source
  CHECK(receiver.downloads.partners() == Downloads::kSourcesMax + 1);
  receiver.downloads.drop(0);
  receiver.downloads.drop(1);
  receiver.downloads.meet_source(30'000, receiver.now);
  CHECK(receiver.downloads.partners() == Downloads::kSourcesMax);
}

TEST_CASE("partners that left make place when their wants have ended") {
  Receiver receiver(100);
  receiver.downloads.meet(0, receiver.now);
  CHECK(receiver.wants() == Wants{{0, 12}});
  CHECK(receiver.offered(0, 1));
  for (SwarmNode node = 1; node < Downloads::kPartnersMax; ++node) receiver.downloads.meet(node, receiver.now);
  receiver.downloads.drop(0);
  receiver.downloads.failed(0, 1, receiver.now);
  for (int i = 0; i < 10; ++i) receiver.downloads.unanswered(0, receiver.now);
  receiver.downloads.meet(100, receiver.now);
  CHECK(receiver.downloads.partners() == Downloads::kPartnersMax - 1);
  receiver.downloads.unanswered(0, receiver.now);
  receiver.downloads.meet(100, receiver.now);
  CHECK(receiver.downloads.partners() == Downloads::kPartnersMax);
}

TEST_CASE("known partners are met again without effect") {
  Receiver receiver(100);
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  receiver.downloads.unanswered(1, receiver.now);
  receiver.downloads.meet(1, receiver.now);
  CHECK(receiver.downloads.partners() == 1);
  CHECK(receiver.wants().empty());
}

TEST_CASE("answers of strangers, and answers without an open want, change nothing") {
  Receiver receiver(10);
  receiver.downloads.meet(1, receiver.now);
  receiver.downloads.meet(2, receiver.now);
  CHECK_FALSE(receiver.offered(1, 3));
  CHECK_FALSE(receiver.offered(77, 3));
  CHECK_FALSE(receiver.offered(77, 10));
  CHECK_FALSE(receiver.offered(77, std::nullopt));
  receiver.downloads.unanswered(1, receiver.now);
  receiver.downloads.unanswered(77, receiver.now);
  receiver.downloads.failed(1, 3, receiver.now);
  receiver.downloads.failed(77, 3, receiver.now);
  receiver.downloads.drop(77);
  CHECK(receiver.downloads.declined() == 0);
  CHECK(receiver.downloads.taken() == UnitSet(10));
  CHECK(receiver.wants() == Wants{{1, 6}, {2, 6}});
  for (std::uint32_t unit = 0; unit < 6; ++unit) CHECK(receiver.offered(1, unit));
  CHECK_FALSE(receiver.offered(1, 6));  // a seventh answer
  CHECK_FALSE(receiver.offered(1, 0));
  CHECK(receiver.downloads.declined() == 0);
  CHECK(receiver.downloads.taken() == set_of(10, {0, 1, 2, 3, 4, 5}));
}

TEST_CASE("a want names the first unit that a reader waits for and nobody has promised") {
  Receiver receiver(10);
  const auto first = [&receiver] {
    receiver.downloads.meet(1, receiver.now);
    const auto want = receiver.downloads.next(receiver.now);
    REQUIRE(want);
    return want->first;
  };
  CHECK_FALSE(first());
  receiver.downloads.wait_for(5);
  receiver.downloads.wait_for(3);
  receiver.downloads.wait_for(3);
  CHECK(first() == 3);
  CHECK(receiver.offered(1, 3));
  CHECK(first() == 5);
  receiver.downloads.failed(1, 3, receiver.now);
  receiver.now += Downloads::kAskFailedAgain;
  CHECK(first() == 3);
  receiver.downloads.stop_waiting(3);
  CHECK(first() == 3);
  receiver.downloads.stop_waiting(3);
  CHECK(first() == 5);
  receiver.downloads.stop_waiting(3);
  receiver.downloads.add(5);
  CHECK_FALSE(first());
  receiver.downloads.stop_waiting(5);
  receiver.downloads.wait_for(5);  // is here
  receiver.downloads.wait_for(10);
  receiver.downloads.wait_for(4'000'000'000U);
  CHECK_FALSE(first());
}

TEST_CASE("a reader may wait for a unit that is wanted later") {
  Receiver receiver(UnitSet(10), set_of(10, {1}));
  receiver.downloads.meet(1, receiver.now);
  receiver.downloads.wait_for(7);
  CHECK_FALSE(receiver.downloads.next(receiver.now)->first);
  receiver.downloads.want(set_of(10, {7}), receiver.now);
  CHECK(receiver.downloads.next(receiver.now)->first == 7);
}

TEST_CASE("a verified unit counts, whoever it came from") {
  Receiver receiver(2);
  receiver.downloads.meet(1, receiver.now);
  receiver.wants();
  receiver.downloads.arrived(77, 1, receiver.now);
  CHECK(receiver.downloads.has() == set_of(2, {1}));
  CHECK_FALSE(receiver.offered(1, 1));
  receiver.receive(1, 0);
  receiver.downloads.arrived(1, 0, receiver.now);
  CHECK(receiver.downloads.is_done());
}

}  // namespace weft::testing
