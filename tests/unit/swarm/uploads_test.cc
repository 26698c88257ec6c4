#include "swarm/uploads.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "unit/swarm/swarm.h"

namespace weft::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Unit = std::optional<std::uint32_t>;

// A sender, its clock and the number of its last want.
struct Sender {
  explicit Sender(std::uint32_t units) : Sender(units, std::make_shared<UploadShare>()) {}
  Sender(std::uint32_t units, std::shared_ptr<UploadShare> of) : share(std::move(of)), uploads(units, *share) {}

  bool want(SwarmNode node, const UnitSet& has, Unit first = {}, bool hungry = false, std::uint8_t traffic = 0) {
    return uploads.want(node, ++number, {has, first, hungry, traffic}, now);
  }
  // The unit that is offered next, which the asker reads at once.
  Unit sent() {
    const auto answer = uploads.next(now);
    if (!answer || !answer->unit) return std::nullopt;
    uploads.ended(answer->node, *answer->unit, true);
    return answer->unit;
  }
  Unit sent_to(SwarmNode node, const UnitSet& has, Unit first = {}, bool hungry = false) {
    REQUIRE(want(node, has, first, hungry));
    return sent();
  }

  std::shared_ptr<UploadShare> share;
  Uploads uploads;
  SwarmTime now = kStart;
  std::uint64_t number = 0;
};

struct Source : Sender {
  explicit Source(std::uint32_t units) : Sender(units) {
    uploads.add_all();
    uploads.become_source();
  }
};

void add(Uploads& uploads, std::initializer_list<std::uint32_t> units) {
  for (const std::uint32_t unit : units) uploads.add(unit);
}

}  // namespace

TEST_CASE("an asker gets the unit that was sent least often, and of equals the one that came last") {
  Sender sender(10);
  add(sender.uploads, {4, 7, 2});
  const UnitSet none(10);
  CHECK(sender.sent_to(1, none) == 2);
  CHECK(sender.sent_to(2, none) == 7);
  CHECK(sender.sent_to(3, none) == 4);
  CHECK(sender.sent_to(4, none) == 2);
  CHECK(sender.sent_to(5, set_of(10, {7})) == 4);
  CHECK(sender.sent_to(6, set_of(10, {4})) == 7);
  add(sender.uploads, {0});
  CHECK(sender.sent_to(7, none) == 0);
  CHECK(sender.sent_to(8, none) == 0);  // the others were sent twice
  CHECK(sender.uploads.sent() == 8);
}

TEST_CASE("the wants of one asker get different units") {
  Sender sender(4);
  add(sender.uploads, {0, 1, 2});
  for (int i = 0; i < 4; ++i) CHECK(sender.want(1, set_of(4, {1})));
  CHECK(sender.uploads.next(sender.now)->unit == 2);
  CHECK(sender.uploads.next(sender.now)->unit == 0);
  CHECK_FALSE(sender.uploads.next(sender.now));
  CHECK(sender.uploads.waiting() == 2);
  // A later want that was sent before the asker knew of these offers.
  CHECK(sender.want(1, set_of(4, {1})));
  CHECK_FALSE(sender.uploads.next(sender.now));
}

TEST_CASE("an answer looks at the last units that the asker lacks") {
  constexpr std::uint32_t kUnits = Uploads::kCandidates + 2;
  Sender sender(kUnits);
  for (std::uint32_t unit = 0; unit < kUnits; ++unit) sender.uploads.add(unit);
  UnitSet other(kUnits);
  other.add(0);
  for (std::uint32_t unit = kUnits; --unit > 0;) {
    CHECK(sender.sent_to(1, other) == unit);
    other.add(unit);
  }
  // Unit 0 was never sent, but it came too long ago. An asker with later units gets unit 0.
  CHECK(sender.sent_to(2, UnitSet(kUnits)) == kUnits - 1);
  CHECK(sender.sent_to(2, set_of(kUnits, {5})) == kUnits - 2);
  CHECK(sender.sent_to(2, set_of(kUnits, {5, 6})) == 0);
}

TEST_CASE("a want waits for a unit that its asker lacks") {
  Sender sender(4);
  add(sender.uploads, {1});
  CHECK(sender.want(1, set_of(4, {1})));
  CHECK_FALSE(sender.uploads.next(sender.now));
  sender.uploads.add(3);
  const auto answer = sender.uploads.next(sender.now);
  REQUIRE(answer);
  CHECK(answer->node == 1);
  CHECK(answer->want == 1);
  CHECK(answer->unit == 3);
  CHECK(sender.uploads.waiting() == 0);
}

TEST_CASE("a set that lost a unit makes the asker lack it") {
  Sender sender(4);
  add(sender.uploads, {1});
  CHECK(sender.want(1, set_of(4, {1})));
  CHECK_FALSE(sender.sent());
  CHECK(sender.want(1, UnitSet(4)));
  CHECK(sender.sent() == 1);
}

TEST_CASE("an asker that failed to read a unit gets it again") {
  for (const bool is_source : {false, true}) {
    CAPTURE(is_source);
    Sender sender(4);
    add(sender.uploads, {1});
    if (is_source) sender.uploads.become_source();
    CHECK(sender.want(1, UnitSet(4)));
    CHECK(sender.want(1, UnitSet(4)));
    CHECK(sender.uploads.next(sender.now)->unit == 1);
    sender.uploads.ended(1, 1, false);
    CHECK_FALSE(sender.uploads.next(sender.now));  // the asker has not reported the failure yet
    CHECK(sender.sent_to(1, UnitSet(4)) == 1);
    CHECK(sender.uploads.sent() == 1);
  }
}

TEST_CASE("a declined upload does not count as sent") {
  Sender sender(4);
  add(sender.uploads, {0, 1});
  CHECK(sender.want(1, UnitSet(4)));
  CHECK(sender.uploads.next(sender.now)->unit == 1);
  sender.uploads.ended(1, 1, false);
  CHECK(sender.sent_to(2, UnitSet(4)) == 1);
  CHECK(sender.sent_to(3, UnitSet(4)) == 0);
  CHECK(sender.uploads.sent() == 2);
}

TEST_CASE("a source sends each unit once and in order") {
  Source sender(3);
  CHECK(sender.sent_to(1, UnitSet(3)) == 0);
  CHECK(sender.sent_to(2, UnitSet(3)) == 1);
  CHECK(sender.sent_to(1, set_of(3, {0})) == 2);
  CHECK_FALSE(sender.sent_to(1, set_of(3, {0, 2})));
  sender.now += seconds(3);
  CHECK_FALSE(sender.sent_to(2, set_of(3, {1})));
  CHECK(sender.uploads.sent() == 3);
}

TEST_CASE("a source begins with the units that it has not sent before") {
  Sender sender(3);
  add(sender.uploads, {0, 1});
  CHECK(sender.sent_to(1, UnitSet(3)) == 1);
  sender.uploads.become_source();
  CHECK(sender.uploads.is_source());
  CHECK(sender.sent_to(2, UnitSet(3)) == 0);
  CHECK_FALSE(sender.sent_to(2, set_of(3, {0})));
  sender.uploads.add(2);
  CHECK(sender.sent() == 2);
}

TEST_CASE("a source sends first to the asker that lacks least") {
  Source sender(6);
  CHECK(sender.want(1, UnitSet(6)));
  CHECK(sender.want(2, set_of(6, {3, 4, 5})));
  CHECK(sender.want(3, set_of(6, {4, 5})));
  std::vector<SwarmNode> order;
  while (const auto answer = sender.uploads.next(sender.now)) order.push_back(answer->node);
  CHECK(order == std::vector<SwarmNode>{2, 3, 1});
}

TEST_CASE("other senders answer in the order of the wants") {
  Sender sender(6);
  sender.uploads.add_all();
  CHECK(sender.want(1, UnitSet(6)));
  CHECK(sender.want(2, set_of(6, {3, 4, 5})));
  CHECK(sender.uploads.next(sender.now)->node == 1);
  CHECK(sender.uploads.next(sender.now)->node == 2);
}

TEST_CASE("a lower class of traffic goes first") {
  for (const bool is_source : {false, true}) {
    Sender sender(6);
    sender.uploads.add_all();
    if (is_source) sender.uploads.become_source();
    CHECK(sender.want(1, set_of(6, {4, 5}), {}, false, 2));
    CHECK(sender.want(2, UnitSet(6), {}, false, 0));
    CHECK(sender.want(3, UnitSet(6), {}, false, 1));
    CHECK_FALSE(sender.uploads.next(sender.now, 3));  // no want of this class
    CHECK(sender.uploads.next(sender.now)->node == 2);
    CHECK(sender.uploads.next(sender.now, 1)->node == 3);
    CHECK(sender.uploads.next(sender.now)->node == 1);
  }
}

TEST_CASE("a source sends a unit to another asker if the upload failed or its session ended") {
  for (const bool is_forgotten : {false, true}) {
    CAPTURE(is_forgotten);
    Source sender(2);
    CHECK(sender.want(1, UnitSet(2)));
    CHECK(sender.want(1, UnitSet(2)));
    CHECK(sender.uploads.next(sender.now)->unit == 0);
    CHECK(sender.uploads.next(sender.now)->unit == 1);
    CHECK(sender.want(2, set_of(2, {1})));
    CHECK_FALSE(sender.uploads.next(sender.now));
    if (is_forgotten)
      sender.uploads.forget(1);
    else
      sender.uploads.ended(1, 0, false);
    CHECK(sender.sent() == 0);
    CHECK(sender.share->uploads == (is_forgotten ? 0 : 1));
  }
}

TEST_CASE("a source sends a unit again to a hungry asker, kResendAfter after the last upload") {
  Source sender(2);
  CHECK(sender.sent_to(1, UnitSet(2)) == 0);
  sender.now += milliseconds(10);
  CHECK(sender.sent_to(1, set_of(2, {0})) == 1);
  CHECK(sender.want(2, UnitSet(2)));
  CHECK(sender.want(3, UnitSet(2), {}, true));
  CHECK_FALSE(sender.sent());
  REQUIRE(sender.uploads.due());
  CHECK(*sender.uploads.due() == kStart + Uploads::kResendAfter);
  sender.now = *sender.uploads.due() - nanoseconds(1);
  CHECK_FALSE(sender.sent());
  sender.now += nanoseconds(1);
  const auto answer = sender.uploads.next(sender.now);
  REQUIRE(answer);
  CHECK(answer->node == 3);
  CHECK(answer->unit == 0);
  CHECK(answer->repeats);
  sender.uploads.ended(3, 0, true);
  CHECK_FALSE(sender.sent());
  // The other unit was sent 10 ms later. Unit 0 was sent just now.
  CHECK(sender.want(3, UnitSet(2), {}, true));
  CHECK_FALSE(sender.sent());
  CHECK(*sender.uploads.due() == kStart + milliseconds(10) + Uploads::kResendAfter);
  sender.now += milliseconds(10);
  CHECK(sender.sent() == 1);
}

TEST_CASE("a source replaces the units of a receiver that has gone as soon as an asker is hungry") {
  Source sender(2);
  CHECK(sender.sent_to(1, UnitSet(2)) == 0);
  CHECK(sender.sent_to(2, UnitSet(2)) == 1);
  CHECK(sender.want(3, UnitSet(2), {}, true));
  CHECK(sender.want(4, UnitSet(2)));
  CHECK_FALSE(sender.uploads.next(sender.now));
  sender.uploads.forget(1);
  const auto answer = sender.uploads.next(sender.now);
  REQUIRE(answer);
  CHECK(answer->node == 3);
  CHECK(answer->unit == 0);
  CHECK_FALSE(sender.uploads.next(sender.now));  // node 4 is not hungry; the session of node 2 goes on
}

TEST_CASE("the end of a node that was sent no unit makes a source look at none again") {
  Source sender(2);
  CHECK(sender.sent_to(1, UnitSet(2)) == 0);
  CHECK(sender.sent_to(1, UnitSet(2)) == 1);
  CHECK(sender.want(2, UnitSet(2), {}, true));
  CHECK(sender.want(3, UnitSet(2)));
  CHECK_FALSE(sender.uploads.next(sender.now));
  const auto due = sender.uploads.due();
  CHECK(due == kStart + Uploads::kResendAfter);
  CHECK(sender.want(4, UnitSet(2)));
  sender.uploads.forget(4);
  sender.uploads.forget(77);
  CHECK(sender.uploads.due() == due);
  sender.uploads.forget(1);
  CHECK(sender.uploads.next(sender.now)->node == 2);
}

TEST_CASE("a unit that was sent and comes again is sent again to an asker that waits for it") {
  Source sender(2);
  CHECK(sender.sent_to(1, UnitSet(2)) == 0);
  sender.uploads.remove(0);
  sender.now += Uploads::kResendAfter;
  CHECK(sender.want(2, set_of(2, {1}), {}, true));
  CHECK_FALSE(sender.sent());
  sender.uploads.add(0);
  CHECK(sender.sent() == 0);
}

TEST_CASE("a want that lacks no unit ends the session of its asker") {
  Sender sender(2);
  CHECK(sender.want(1, UnitSet(2)));
  CHECK(sender.want(2, UnitSet(2)));
  CHECK(sender.want(1, UnitSet::full(2)));
  for (const std::uint64_t want : {1, 3}) {
    const auto answer = sender.uploads.next(sender.now);
    REQUIRE(answer);
    CHECK(answer->want == want);
    CHECK_FALSE(answer->unit);
  }
  CHECK_FALSE(sender.uploads.next(sender.now));
  CHECK(sender.uploads.waiting() == 1);
}

TEST_CASE("a source begins anew after its last session") {
  for (const bool forgotten : {false, true}) {
    CAPTURE(forgotten);
    Source sender(2);
    CHECK(sender.want(2, UnitSet(2)));
    CHECK(sender.uploads.next(sender.now)->unit == 0);
    CHECK(sender.sent_to(1, UnitSet(2)) == 1);
    const auto end = [&](SwarmNode node) {
      if (forgotten) return sender.uploads.forget(node);
      REQUIRE(sender.want(node, UnitSet::full(2)));
      while (const auto answer = sender.uploads.next(sender.now)) CHECK_FALSE(answer->unit);
    };
    end(1);
    CHECK_FALSE(sender.sent_to(3, set_of(2, {0})));  // the session of node 2 goes on
    sender.uploads.ended(2, 0, true);
    CHECK(sender.want(2, set_of(2, {0})));
    end(2);
    end(3);
    CHECK(sender.uploads.waiting() == 0);
    CHECK(sender.want(4, UnitSet(2)));
    const auto answer = sender.uploads.next(sender.now);
    CHECK(answer->unit == 0);
    CHECK_FALSE(answer->repeats);
  }
}

TEST_CASE("a clock that starts at 0 delays no repeat") {
  Source sender(1);
  sender.now = SwarmTime{};
  CHECK(sender.sent_to(1, UnitSet(1)) == 0);
  sender.uploads.forget(1);
  CHECK(sender.sent_to(2, UnitSet(1), {}, true) == 0);
}

TEST_CASE("every fourth upload is the unit that a reader of the asker waits for") {
  Sender sender(20);
  for (std::uint32_t unit = 0; unit < 20; ++unit) sender.uploads.add(unit);
  UnitSet has(20);
  std::vector<std::uint32_t> sent;
  for (std::uint32_t first = 0; sent.size() < 9;) {
    const Unit unit = sender.sent_to(1, has, first);
    REQUIRE(unit);
    has.add(*unit);
    sent.push_back(*unit);
    if (unit == first) ++first;
  }
  CHECK(sent == std::vector<std::uint32_t>{19, 18, 17, 0, 16, 15, 14, 1, 13});
}

TEST_CASE("a unit that a reader waits for is not sent if the asker has it, or the sender lacks it") {
  Sender sender(4);
  add(sender.uploads, {1, 2});
  const UnitSet has = set_of(4, {1});
  for (int i = 0; i < 8; ++i) CHECK(sender.sent_to(1, has, 1) == 2);
  for (int i = 0; i < 8; ++i) CHECK(sender.sent_to(1, has, 3) == 2);
  for (int i = 0; i < 8; ++i) CHECK(sender.sent_to(1, has, 4'000'000'000U) == 2);
}

TEST_CASE("a source sends a unit that a reader waits for once too") {
  Source sender(8);
  for (std::uint32_t unit = 0; unit < 3; ++unit) CHECK(sender.sent_to(1, UnitSet(8), 7) == unit);
  CHECK(sender.sent_to(1, UnitSet(8), 7) == 7);
  for (std::uint32_t unit = 3; unit < 7; ++unit) CHECK(sender.sent_to(2, UnitSet(8), 7) == unit);
  CHECK_FALSE(sender.sent_to(2, UnitSet(8), 7));
}

TEST_CASE("kWantsOpen wants of an asker wait") {
  Sender sender(2);
  for (std::size_t i = 0; i < kWantsOpen; ++i) CHECK(sender.want(1, UnitSet(2)));
  CHECK_FALSE(sender.want(1, UnitSet(2)));
  CHECK(sender.want(2, UnitSet(2)));
  CHECK(sender.share->waiting == kWantsOpen + 1);
  sender.uploads.add(0);
  CHECK(sender.sent() == 0);
  CHECK(sender.want(1, UnitSet(2)));
  CHECK_FALSE(sender.want(1, UnitSet(2)));
}

TEST_CASE("a refused want tells its set all the same") {
  Sender sender(2);
  for (std::size_t i = 0; i < kWantsOpen; ++i) CHECK(sender.want(1, set_of(2, {0})));
  sender.uploads.add(0);
  CHECK_FALSE(sender.sent());
  CHECK_FALSE(sender.want(1, UnitSet(2)));
  CHECK(sender.sent() == 0);
}

TEST_CASE("kWantsWaiting wants wait at a node, for all versions") {
  const auto share = std::make_shared<UploadShare>();
  Sender one(2, share), other(3, share);
  for (std::size_t i = 0; i + 1 < kWantsWaiting; ++i)
    REQUIRE(one.want(static_cast<SwarmNode>(i / kWantsOpen), UnitSet(2)));
  CHECK(other.want(9'999, UnitSet(3)));
  CHECK(share->waiting == kWantsWaiting);
  CHECK_FALSE(one.want(9'999, UnitSet(2)));
  CHECK_FALSE(other.want(9'998, UnitSet(3)));
  one.uploads.forget(0);
  CHECK(share->waiting == kWantsWaiting - kWantsOpen);
  CHECK(other.want(9'998, UnitSet(3)));
}

TEST_CASE("a node has kUploadsAtOnce uploads, for all versions") {
  const auto share = std::make_shared<UploadShare>();
  Sender one(20, share), other(20, share);
  one.uploads.add_all();
  other.uploads.add_all();
  for (std::size_t i = 0; i < kUploadsAtOnce; ++i) {
    CHECK(one.want(1, UnitSet(20)));
    CHECK(other.want(1, UnitSet(20)));
  }
  for (int i = 0; i < 7; ++i) CHECK(one.uploads.next(one.now)->unit);
  std::size_t more = 0;
  while (other.uploads.next(other.now)) ++more;
  CHECK(more == kUploadsAtOnce - 7);
  CHECK_FALSE(one.uploads.next(one.now));
  one.uploads.ended(1, 0, true);
  CHECK(other.uploads.next(other.now));
  CHECK_FALSE(one.uploads.next(one.now));
  other.uploads.forget(1);
  CHECK(share->uploads == 6);
  for (int i = 0; i < 5; ++i) CHECK(one.uploads.next(one.now)->unit);
  CHECK_FALSE(one.uploads.next(one.now));  // of 12 wants
  CHECK(one.uploads.waiting() == 0);
}

TEST_CASE("an upload that lasts longer than kPlaceMax gives its place to the want of another asker") {
  const auto share = std::make_shared<UploadShare>();
  Sender one(40, share), other(4, share);
  one.uploads.add_all();
  other.uploads.add_all();
  for (std::size_t i = 0; i < kUploadsAtOnce; ++i) {
    CHECK(one.want(1, UnitSet(40)));
    CHECK(one.uploads.next(one.now)->unit);
  }
  CHECK_FALSE(one.uploads.due());  // nobody needs a place
  CHECK(one.want(1, UnitSet(40)));
  CHECK(other.want(2, UnitSet(4)));
  CHECK(*one.uploads.due() == kStart + Uploads::kPlaceMax);
  one.now = kStart + Uploads::kPlaceMax - nanoseconds(1);
  CHECK_FALSE(one.uploads.next(one.now));
  one.now += nanoseconds(1);
  CHECK_FALSE(one.uploads.next(one.now));  // the silent asker gets nothing
  CHECK(share->uploads == kUploadsAtOnce - 1);
  CHECK(share->aside == 1);
  CHECK(other.uploads.next(one.now)->unit);
  CHECK(share->uploads == kUploadsAtOnce);
  one.uploads.ended(1, 1, true);
  CHECK_FALSE(one.uploads.next(one.now));  // unit 0 has not ended
  one.uploads.ended(1, 0, true);
  CHECK(share->aside == 0);
  CHECK(one.uploads.next(one.now)->unit);
  CHECK(share->uploads == kUploadsAtOnce);
  one.uploads.forget(1);
  CHECK(share->uploads == 1);
}

TEST_CASE("of the uploads of silent askers kUploadsAsideMax give their places away") {
  Sender sender(100);
  sender.uploads.add_all();
  std::size_t began = 0;
  for (SwarmNode node = 0; node < 4; ++node, sender.now += Uploads::kPlaceMax) {
    for (std::size_t i = 0; i < kUploadsAtOnce; ++i) CHECK(sender.want(node, UnitSet(100)));
    while (const auto answer = sender.uploads.next(sender.now)) began += answer->unit ? 1 : 0;
  }
  CHECK(began == kUploadsAtOnce + kUploadsAsideMax);
  CHECK(sender.share->uploads == kUploadsAtOnce);
  CHECK(sender.share->aside == kUploadsAsideMax);
  for (SwarmNode node = 0; node < 4; ++node) sender.uploads.forget(node);
  CHECK(sender.share->uploads == 0);
  CHECK(sender.share->aside == 0);
}

TEST_CASE("a want is answered after kWantWaitMax, without a unit") {
  Sender sender(4);
  CHECK_FALSE(sender.uploads.due());
  CHECK(sender.want(1, UnitSet(4)));
  sender.now += milliseconds(500);
  CHECK(sender.want(2, UnitSet(4)));
  CHECK(*sender.uploads.due() == kStart + kWantWaitMax);
  sender.now = kStart + kWantWaitMax - nanoseconds(1);
  CHECK_FALSE(sender.uploads.next(sender.now));
  sender.now += nanoseconds(1);
  const auto answer = sender.uploads.next(sender.now);
  REQUIRE(answer);
  CHECK(answer->node == 1);
  CHECK(answer->want == 1);
  CHECK_FALSE(answer->unit);
  CHECK_FALSE(sender.uploads.next(sender.now));
  CHECK(*sender.uploads.due() == kStart + milliseconds(500) + kWantWaitMax);
  sender.now += seconds(10);
  CHECK(sender.uploads.next(sender.now)->node == 2);
  CHECK_FALSE(sender.uploads.due());
  CHECK(sender.share->waiting == 0);
  CHECK(sender.share->uploads == 0);
}

TEST_CASE(
    "a sender without a free upload still answers after kWantWaitMax, and is due when one may give its place away") {
  Source sender(20);
  for (std::size_t i = 0; i < kUploadsAtOnce; ++i) CHECK(sender.want(1, UnitSet(20)));
  while (sender.uploads.next(sender.now)) {
  }
  CHECK(sender.share->uploads == kUploadsAtOnce);
  UnitSet rest = UnitSet::full(20);
  rest.remove(0);
  sender.uploads.ended(1, 0, true);
  CHECK(sender.want(2, rest, {}, true));
  CHECK_FALSE(sender.uploads.next(sender.now));  // unit 0 may be sent again after kResendAfter
  CHECK(*sender.uploads.due() == kStart + Uploads::kResendAfter);
  CHECK(sender.want(3, UnitSet(20)));
  CHECK(sender.uploads.next(sender.now)->unit == 12);
  sender.now += Uploads::kResendAfter + milliseconds(1);
  CHECK_FALSE(sender.uploads.next(sender.now));
  CHECK(*sender.uploads.due() == kStart + Uploads::kPlaceMax);
  sender.now = kStart + kWantWaitMax;
  const auto answer = sender.uploads.next(sender.now);
  REQUIRE(answer);
  CHECK(answer->node == 2);
  CHECK_FALSE(answer->unit);
}

TEST_CASE("a removed unit is not sent until it comes again") {
  for (const bool is_source : {false, true}) {
    CAPTURE(is_source);
    Sender sender(3);
    sender.uploads.add_all();
    if (is_source) sender.uploads.become_source();
    sender.uploads.remove(0);
    sender.uploads.remove(0);
    CHECK(sender.sent_to(1, set_of(3, {2})) == 1);
    CHECK_FALSE(sender.sent_to(1, set_of(3, {1, 2}), 0, true));
    sender.uploads.add(0);
    CHECK(sender.sent() == 0);
  }
}

TEST_CASE("a unit that comes after another was removed is sent to the wants that wait") {
  Sender sender(4);
  add(sender.uploads, {0, 1});
  CHECK(sender.want(1, set_of(4, {0, 1})));
  CHECK_FALSE(sender.sent());
  sender.uploads.remove(0);
  sender.uploads.add(2);
  CHECK(sender.sent() == 2);
}

TEST_CASE("a unit may be removed while it is sent") {
  Source sender(1);
  CHECK(sender.want(1, UnitSet(1)));
  CHECK(sender.uploads.next(sender.now)->unit == 0);
  sender.uploads.remove(0);
  sender.uploads.ended(1, 0, false);
  CHECK(sender.share->uploads == 0);
  CHECK_FALSE(sender.sent_to(2, UnitSet(1), {}, true));
  sender.uploads.add(0);
  CHECK(sender.sent() == 0);
}

TEST_CASE("a sender returns its part of the share") {
  const auto share = std::make_shared<UploadShare>();
  Sender stays(4, share);
  stays.uploads.add_all();
  CHECK(stays.want(1, UnitSet(4)));
  CHECK(stays.want(1, UnitSet(4)));
  CHECK(stays.uploads.next(stays.now)->unit);
  {
    Sender goes(4, share);
    goes.uploads.add_all();
    for (int i = 0; i < 3; ++i) CHECK(goes.want(1, UnitSet(4)));
    CHECK(goes.uploads.next(goes.now)->unit);
    CHECK(share->waiting == 3);
    CHECK(share->uploads == 2);
  }
  CHECK(share->waiting == 1);
  CHECK(share->uploads == 1);
}

TEST_CASE("a set of another length is refused") {
  Sender sender(65);
  sender.uploads.add_all();
  for (const std::uint32_t wrong : {0U, 64U, 66U, 32'768U}) CHECK_FALSE(sender.want(1, UnitSet(wrong)));
  CHECK(sender.share->waiting == 0);
  CHECK_FALSE(sender.uploads.next(sender.now));
  CHECK(sender.want(1, UnitSet(65)));
  CHECK_FALSE(sender.want(1, UnitSet(64)));
  CHECK(sender.sent() == 0);
}

TEST_CASE("ends of uploads that are not in progress change nothing") {
  Source sender(2);
  CHECK(sender.want(1, set_of(2, {1})));
  CHECK(sender.uploads.next(sender.now)->unit == 0);
  sender.uploads.ended(2, 0, false);
  sender.uploads.ended(1, 1, false);
  sender.uploads.ended(1, 4'000'000'000U, true);
  CHECK(sender.share->uploads == 1);
  CHECK(sender.want(2, set_of(2, {1})));
  CHECK_FALSE(sender.uploads.next(sender.now));
  sender.uploads.ended(1, 0, true);
  sender.uploads.ended(1, 0, true);
  CHECK(sender.uploads.sent() == 1);
  CHECK(sender.share->uploads == 0);
  sender.uploads.forget(77);
  CHECK(sender.share->waiting == 1);
}

TEST_CASE("units beyond the last one are not added") {
  Sender sender(2);
  sender.uploads.add(2);
  sender.uploads.add(4'000'000'000U);
  sender.uploads.remove(4'000'000'000U);
  CHECK(sender.want(1, UnitSet(2)));
  CHECK_FALSE(sender.uploads.next(sender.now));
}

}  // namespace weft::testing
