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

TEST_CASE("the longest prefix of a name decides who may change it") {
  NameGrants grants{grant({"1001"})};
  grants.by_prefix.emplace("team", grant({"1002"}));
  grants.by_prefix.emplace("team/", grant({"1003"}));
  grants.by_prefix.emplace("team/secret", grant({}));
  grants.others.setting = "control.publish";
  for (auto& [prefix, one] : grants.by_prefix) one.setting = "the grant for " + prefix;
  const auto user_of = [&](std::string_view model) {
    for (const uid_t user : {1001, 1002, 1003})
      if (check_access(grants, model, {1, user, 7, {}}, "publish").ok()) return user;
    CHECK(check_access(grants, model, {1, 0, 0, {}}, "publish").ok());
    return uid_t{0};
  };
  CHECK(user_of("other") == 1001);
  CHECK(user_of("teams") == 1001);
  CHECK(user_of("teams/x") == 1001);
  CHECK(user_of("team") == 1002);
  CHECK(user_of("team/x") == 1003);
  CHECK(user_of("team/secrets") == 1003);
  CHECK(user_of("team/secret") == 0);
  CHECK(user_of("team/secret/x") == 0);
  CHECK(check_access(grants, "team/x", {1, 1001, 7, {}}, "publish").error().message ==
        "weftd: user 1001 may not publish team/x here: expected root, weftd's user, or one of the grant for team/ in "
        "weft.conf");
}

TEST_CASE("a change of no name needs some grant, or every grant") {
  NameGrants grants{grant({"1001", "1003"})};
  grants.by_prefix.emplace("team/", grant({"1002", "1003"}));
  const auto any = [&](uid_t user) { return check_any_access(grants, {1, user, 7, {}}, "publish").ok(); };
  const auto every = [&](uid_t user) { return check_every_access(grants, {1, user, 7, {}}, "restore").ok(); };
  CHECK((any(1001) && any(1002) && any(1003) && !any(1004)));
  CHECK((!every(1001) && !every(1002) && every(1003) && every(0)));
}

TEST_CASE("a rule has a prefix of names, and who may publish or remove") {
  const auto rule = parse_grant_rule("team-a/ publish=@team-a,alice remove=");
  REQUIRE(rule.ok());
  CHECK(rule->prefix == "team-a/");
  CHECK(*rule->publish == std::vector<std::string>{"@team-a", "alice"});
  CHECK(rule->remove->empty());
  CHECK(!parse_grant_rule("team publish=alice")->remove);
  for (const std::string text : {"", "team/", "publish=alice", "/ publish=a", "a//b publish=a",
                                 "team/ publish=a publish=b", "team/ gc=a", "team/ alice", "../ publish=a"}) {
    CAPTURE(text);
    CHECK(parse_grant_rule(text).error().code == Errc::invalid);
  }
}

TEST_CASE("an author is bound by protected tags unless it is root or the daemon's user") {
  CHECK(!author_of({1, 0, 0, {}}).bound);
  CHECK(!author_of({1, ::geteuid(), 7, {}}).bound);
  CHECK(author_of({1, kSomebody, 7, {}}).bound);
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
