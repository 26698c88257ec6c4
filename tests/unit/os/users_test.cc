#include "os/lookups/users.h"

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include "os/lookups/user_lists.h"
#include "testing.h"

namespace weft {
namespace {

using namespace testing;
using Groups = std::vector<gid_t>;

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/bin/bash\n"
    "# a remark\n"
    "+@netgroup::::::\n"
    "\n"
    "ann:x:1000:100:Ann, of:/home/ann:/bin/sh\n"
    "short:x:7:7\n"
    "beyond:x:4294967296:1:::\n"
    "none:x:4294967295:1:::\n"
    "minus:x:-1:1:::\n"
    ":x:8:8:::\n"
    "ann:x:1001:101:another:/:/bin/sh\n"
    "twin:x:1000:102:the number of ann:/:/bin/sh\n"
    "last:x:9:9::/:/bin/sh";

constexpr std::string_view kGroup =
    "root:x:0:\n"
    "+:::\n"
    "ml:x:50:ann,bob\n"
    "users:x:100:\n"
    "bad:x:fifty:ann\n"
    "long:x:51:ann:ann\n"
    "announcers:x:52:anna,joann\n"
    "late:x:53:bob,ann";

TEST_CASE("a user of /etc/passwd by name and by number") {
  const auto root = find_user(kPasswd, "root");
  REQUIRE(root);
  CHECK(root->uid == 0);
  const auto ann = find_user(kPasswd, uid_t{1000});
  REQUIRE(ann);
  CHECK((ann->name == "ann" && ann->gid == 100));
  CHECK(find_user(kPasswd, "ann")->uid == 1000);  // the first of two entries
  CHECK(find_user(kPasswd, "last")->gid == 9);    // without a line end
}

TEST_CASE("lines of /etc/passwd that are no entry are skipped") {
  for (const std::string_view name : {"", "+@netgroup", "# a remark", "short", "beyond", "none", "minus", "nobody"}) {
    CAPTURE(name);
    CHECK_FALSE(find_user(kPasswd, name));
  }
  for (const uid_t uid : {7U, 8U, 4294967295U}) CHECK_FALSE(find_user(kPasswd, uid));
  CHECK_FALSE(find_user("", "root"));
}

TEST_CASE("a group of /etc/group, and the groups of a user") {
  CHECK(find_group(kGroup, "ml") == gid_t{50});
  for (const std::string_view name : {"", "+", "bad", "long", "nogroup"}) CHECK_FALSE(find_group(kGroup, name));
  CHECK(groups_with(kGroup, "ann") == Groups{50, 53});
  CHECK(groups_with(kGroup, "bob") == Groups{50, 53});
  CHECK(groups_with(kGroup, "an").empty());
  CHECK(groups_with(kGroup, "").empty());
}

TEST_CASE("the machine's own root") {
  CHECK(must(user_id("root")) == 0);
  CHECK(must(group_id("root")) == 0);
  CHECK(name_of_user(0) == "root");
  const Groups groups = login_groups(0, 7);
  REQUIRE_FALSE(groups.empty());
  CHECK(groups.front() == 7);
}

TEST_CASE("a user and a group that the machine does not have") {
  for (const auto& error : {user_id("no such user").error(), group_id("no such user").error()}) {
    CHECK(error.code == Errc::invalid);
    CHECK(error.message.find("\"no such user\"") != std::string::npos);
  }
  CHECK_FALSE(name_of_user(3'999'999'999U));
  CHECK(login_groups(3'999'999'999U, 7).empty());
}

}  // namespace
}  // namespace weft
