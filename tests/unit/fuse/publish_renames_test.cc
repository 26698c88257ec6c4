// The requests of a rename that publishes, and the time for which publishes hold directories.
#include "fuse/state/publish_renames.h"

#include <doctest/doctest.h>

#include <string>

#include "fakes/stepped_time.h"

using namespace weft;
using namespace weft::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kThread = 41;
constexpr uid_t kUser = 1000;

PublishOrder order_of(const std::string& name) {
  PublishOrder order;
  order.thread = kThread;
  order.user.uid = kUser;
  order.dir = order.to = kNewIno;
  order.name = name;
  order.model = name;
  return order;
}

struct Fixture {
  SteppedTime time;
  PublishRenames renames{time};
  const PublishOrder order = order_of("m");

  // The LOOKUP `request` publishes.
  void publish(std::uint64_t request, Status outcome) {
    auto waiting = renames.waiting(kThread, kUser, request);
    REQUIRE(waiting);
    waiting->request = request;
    renames.begin(*waiting);
    renames.end(kThread, std::move(outcome));
  }
};

}  // namespace

TEST_CASE("a rename is published between its two requests, and answered once") {
  Fixture f;
  CHECK_FALSE(f.renames.asked(f.order, 2));
  CHECK_FALSE(f.renames.waiting(kThread, kUser, 4));
  f.renames.ask(f.order);
  CHECK_FALSE(f.renames.published(kThread, kUser, kNewIno, "m"));
  f.publish(4, {});
  CHECK_FALSE(f.renames.waiting(kThread, kUser, 6));  // of the second path
  REQUIRE(f.renames.published(kThread, kUser, kNewIno, "m"));
  CHECK(f.renames.published(kThread, kUser, kNewIno, "m")->request == 4);
  CHECK_FALSE(f.renames.published(kThread, kUser, kNewIno, "other"));
  CHECK_FALSE(f.renames.published(kThread, kUser, kNewIno + 1, "m"));
  const auto asked = f.renames.asked(f.order, 8);
  REQUIRE(asked);
  REQUIRE(asked->outcome);
  CHECK(asked->outcome->ok());
  f.renames.forget(kThread);
  CHECK_FALSE(f.renames.asked(f.order, 10));  // the next version, by the same two names
}

TEST_CASE("a failed publish leaves the draft's name to the draft") {
  Fixture f;
  f.renames.ask(f.order);
  f.publish(4, Error{Errc::busy, "open"});
  CHECK_FALSE(f.renames.published(kThread, kUser, kNewIno, "m"));
  const auto asked = f.renames.asked(f.order, 8);
  REQUIRE(asked);
  REQUIRE(asked->outcome);
  CHECK(asked->outcome->error().code == Errc::busy);
}

TEST_CASE("a rename without a lookup of new/ is known and not published") {
  Fixture f;
  f.renames.ask(f.order);
  const auto asked = f.renames.asked(f.order, 4);
  REQUIRE(asked);
  CHECK_FALSE(asked->outcome);
}

TEST_CASE("other threads, users and names, and later requests are of other renames") {
  Fixture f;
  f.renames.ask(f.order);
  CHECK_FALSE(f.renames.waiting(kThread + 1, kUser, 4));
  CHECK_FALSE(f.renames.waiting(kThread, kUser + 1, 4));
  CHECK_FALSE(f.renames.asked(order_of("n"), 4));
  SUBCASE("another rename of the thread takes its place") {
    f.renames.ask(order_of("n"));
    CHECK_FALSE(f.renames.asked(f.order, 6));
    CHECK(f.renames.asked(order_of("n"), 6));
  }
  SUBCASE("its second request never came") {
    f.time.pass(kRenameAgain + 1s);
    CHECK_FALSE(f.renames.waiting(kThread, kUser, 6));
    CHECK_FALSE(f.renames.asked(f.order, 6));
  }
  SUBCASE("a publish takes any time") {
    PublishOrder running = f.order;
    running.request = 4;
    f.renames.begin(running);
    f.time.pass(1h);
    f.renames.end(kThread, {});
    CHECK(f.renames.asked(f.order, 6));
  }
}

TEST_CASE("a later server goes on with the publish of an earlier one") {
  Fixture f;
  PublishOrder order = f.order;
  order.request = 4;
  SUBCASE("in the request that the kernel sends again") {
    f.renames.restore({order, false});
    CHECK_FALSE(f.renames.waiting(kThread, kUser, 6));
    CHECK(f.renames.waiting(kThread, kUser, 4));
  }
  SUBCASE("whose rename has no answer yet") {
    f.renames.restore({order, true});
    CHECK(f.renames.published(kThread, kUser, kNewIno, "m"));
    CHECK(f.renames.asked(f.order, 8)->outcome);
  }
  SUBCASE("whose rename has its answer, unless the kernel sends it again") {
    order.answered = 8;
    f.renames.restore({order, true});
    CHECK_FALSE(f.renames.published(kThread, kUser, kNewIno, "m"));
    CHECK(f.renames.asked(f.order, 8)->outcome);
    CHECK_FALSE(f.renames.asked(f.order, 10));
  }
}

TEST_CASE("a user's publishes hold directories for half of the time, one at once") {
  SteppedTime time;
  HeldTime held(time);
  const auto first = held.begin(kUser);
  REQUIRE(first);
  CHECK(first->until == time.now() + kHeldMax);
  CHECK_FALSE(held.begin(kUser));
  const auto other = held.begin(kUser + 1);
  REQUIRE(other);
  held.end(kUser + 1, *other);
  time.pass(50ms);
  held.end(kUser, *first);
  const auto second = held.begin(kUser);
  REQUIRE(second);
  CHECK(second->until == time.now() + kHeldMax - 25ms);
  time.pass(kHeldMax + 8s);  // the import did not end in time
  held.end(kUser, *second);
  CHECK_FALSE(held.begin(kUser));
  time.pass(6s);
  CHECK_FALSE(held.begin(kUser));
  time.pass(5s);
  CHECK(held.begin(kUser)->until == time.now() + kHeldMax);
}
