#include "cli/shared/swarm_lines.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "testing.h"

namespace weft {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(std::string_view status) {
  return swarm_lines(testing::must(JsonValue::parse(status)));
}

TEST_CASE("a swarm is one line, whatever the node's parts in it are") {
  CHECK(
      lines_of(R"({"swarms": {
    "introduced": [{"manifest": "aa", "version": "org/m@2", "members": 7},
                   {"manifest": "bb", "version": "", "members": 1}],
    "fetched": [{"manifest": "aa", "version": "org/m@2", "units": 240, "here": 118, "partners": 5, "from_partners": 90,
                 "from_source": 20, "from_origin": 0, "declined": 12, "hungry": true, "done": false},
                {"manifest": "dd", "version": "n@1", "units": 9, "here": 9, "partners": 1, "from_partners": 1,
                 "from_source": 0, "from_origin": 8, "declined": 0, "hungry": false, "done": true}],
    "sent": [{"manifest": "aa", "version": "org/m@2", "units": 240, "here": 121, "sent": 40, "waiting": 3,
              "uploads": 2, "is_source": false},
             {"manifest": "cc", "version": "n@3", "units": 8, "here": 8, "sent": 16, "waiting": 0, "uploads": 0,
              "is_source": true}],
    "named": [{"manifest": "dd", "version": "n@1", "units": 9, "sent": 7, "waiting": 1, "uploads": 2},
              {"manifest": "ee", "version": "n@4", "units": 9, "sent": 1, "waiting": 0, "uploads": 0}]}})") ==
      Lines{"org/m@2: 121 of 240 units, 5 partners, 110 received (90 from partners, 20 from the source), 12 declined, "
            "40 sent, hungry, directory of 7 nodes",
            "manifest bb: directory of 1 node", "n@3: 8 of 8 units, 16 sent as the source",
            "n@1: 9 of 9 units, 1 partner, 9 received (1 from partners, 8 from the origin), 0 declined, 7 named at the "
            "origin",
            "n@4: 1 named at the origin"});
}

TEST_CASE("a status without swarms, or with other members, gives no line that is wrong") {
  CHECK(lines_of("{}").empty());
  CHECK(lines_of(R"({"swarms": 3})").empty());
  CHECK(lines_of(R"({"swarms": {"fetched": [{"units": 3}], "sent": 1, "introduced": [null]}})").empty());
  CHECK(lines_of(R"({"swarms": {"sent": [{"manifest": "00112233445566", "sent": "many"}]}})") ==
        Lines{"manifest 001122334455: 0 of 0 units, 0 sent"});
}

}  // namespace
}  // namespace weft
