// Shares of users in a server, and whose turn it is.
#include "base/user_shares.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace weft {
namespace {

constexpr uid_t kOwn = 100, kOne = 1001, kOther = 1002;

UserShares shares_of(std::uint64_t max) {
  return {[max] { return UserShares::bound_of(max); }, kOwn};
}

TEST_CASE("a user holds half, all users three quarters, and the administrators the rest") {
  UserShares shares = shares_of(100);
  auto one = shares.take(kOne, 50);
  CHECK(one);
  CHECK_FALSE(shares.take(kOne));
  auto other = shares.take(kOther, 25);
  CHECK(other);
  CHECK_FALSE(shares.take(kOther));
  auto root = shares.take(0, 20), own = shares.take(kOwn, 5);
  CHECK(root);
  CHECK(own);
  CHECK_FALSE(shares.take(0));
  one.reset();
  CHECK(shares.take(kOne, 50));
  CHECK_FALSE(shares.take(kOne, 51));
  CHECK(shares.most_for(kOne) == 50);
  CHECK(shares.most_for(0) == 100);
}

TEST_CASE("a share may outlive the shares, and a huge count does not wrap") {
  std::shared_ptr<void> held;
  {
    UserShares shares = shares_of(UINT64_MAX);
    held = shares.take(kOne, 7);
    CHECK(held);
    CHECK_FALSE(shares.take(kOne, UINT64_MAX - 3));
  }
  held.reset();
}

TEST_CASE("a lower bound refuses more, and what is held stays") {
  std::uint64_t max = 100;
  UserShares shares([&max] { return UserShares::bound_of(max); }, kOwn);
  const auto held = shares.take(kOne, 40);
  max = 20;
  CHECK_FALSE(shares.take(kOne));
  CHECK_FALSE(shares.take(0));
  max = 100;
  CHECK(shares.take(kOne));
}

TEST_CASE("a recount replaces what users hold") {
  UserShares shares = shares_of(8);
  CHECK(shares.add(kOne, 4));
  CHECK_FALSE(shares.add(kOne));
  shares.recount({{kOne, 1}, {0, 2}});
  CHECK(shares.add(kOne, 3));
  CHECK_FALSE(shares.add(kOne));
  CHECK(shares.add(0, 2));
  CHECK_FALSE(shares.add(0));
}

TEST_CASE("users take turns, however many jobs one has") {
  UserTurns<std::string> turns;
  CHECK_FALSE(turns.next());
  for (const char* job : {"a1", "a2", "a3"}) turns.add(kOne, job);
  CHECK(turns.next() == "a1");
  turns.add(kOther, "b1");
  CHECK(turns.next() == "b1");
  CHECK(turns.next() == "a2");
  turns.add(0, "root");
  CHECK(turns.next() == "root");
  CHECK(turns.next() == "a3");
  CHECK_FALSE(turns.next());
}

}  // namespace
}  // namespace weft
