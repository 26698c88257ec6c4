#include "daemon/access.h"

#include <doctest/doctest.h>
#include <unistd.h>

namespace weft {
namespace {

constexpr uid_t kSomebody = 54'321;

Grant grant(const std::vector<std::string>& who) {
  auto made = parse_grant(who);
  REQUIRE(made.ok());
  return std::move(made).value();
}

bool may(const Grant& grant, const PeerCredentials& peer) {
  const Status status = check_access(grant, peer, "publish");
  if (!status.ok()) CHECK(status.error().code == Errc::permission);
  return status.ok();
}

TEST_CASE("root, the daemon's user and named users have access") {
  CHECK(may({}, {1, 0, 0, {}}));
  CHECK(may({}, {1, ::geteuid(), kSomebody, {}}));
  CHECK(!may({}, {1, kSomebody, 0, {0}}));
}

TEST_CASE("users and groups by number and by name") {
  CHECK(may(grant({"54321"}), {1, kSomebody, 7, {}}));
  CHECK(!may(grant({"54321"}), {1, kSomebody + 1, 54'321, {54'321}}));
  CHECK(may(grant({"@7"}), {1, kSomebody, 7, {}}));
  CHECK(may(grant({"@8"}), {1, kSomebody, 7, {6, 8}}));
  CHECK(!may(grant({"@9"}), {1, kSomebody, 7, {6, 8}}));
  CHECK(grant({"root"}).users.contains(0));
  CHECK(grant({"@root"}).groups.contains(0));
}

TEST_CASE("a refusal names the user, the action and the setting") {
  Grant grant;
  grant.setting = "control.publish";
  const Status refused = check_access(grant, {1, kSomebody, 7, {}}, "tag versions");
  REQUIRE(!refused.ok());
  CHECK(refused.error().message ==
        "weftd: user 54321 may not tag versions here: expected root, weftd's user, or one of "
        "control.publish in weft.conf");
}

TEST_CASE("what no setting grants is for root and the daemon's user") {
  CHECK(check_owner({1, 0, 0, {}}, "change the cluster's key").ok());
  CHECK(check_owner({1, ::geteuid(), kSomebody, {}}, "change the cluster's key").ok());
  const Status refused = check_owner({1, kSomebody, 0, {0}}, "change the cluster's key");
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == Errc::permission);
  CHECK(refused.error().message ==
        "weftd: user 54321 may not change the cluster's key here: expected root or weftd's user");
}

TEST_CASE("an unknown user or group is no grant") {
  for (const std::string who : {"", "@", "no-such-user-here", "@no-such-group-here", "4294967295", "-1"}) {
    CAPTURE(who);
    CHECK(parse_grant(std::vector<std::string>{who}).error().code == Errc::invalid);
  }
}

}  // namespace
}  // namespace weft
