#include "placement/rendezvous.h"

#include <doctest/doctest.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/sha256.h"

namespace weft::testing {
namespace {

Digest key(int number) {
  const std::string text = std::to_string(number);
  return sha256(std::as_bytes(std::span(text)));
}

}  // namespace

TEST_CASE("all nodes agree to whom a key belongs, and few keys move with a node") {
  const std::vector<std::string> nodes{"a", "b", "c", "d", "e"};
  const std::vector<std::string> turned(nodes.rbegin(), nodes.rend());
  std::map<std::string, int> turns;
  int moved = 0;
  for (int i = 0; i < 500; ++i) {
    const auto before = rendezvous_nodes(key(i), nodes, 2);
    REQUIRE(before.size() == 2);
    CHECK(before[0] != before[1]);
    CHECK(rendezvous_nodes(key(i), turned, 2) == before);
    ++turns[before[0]];
    const auto after = rendezvous_nodes(key(i), std::span(nodes).first(4), 1);
    if (after[0] != before[0]) ++moved;
    if (before[0] == "e") CHECK(after[0] == before[1]);
  }
  CHECK(moved == turns["e"]);
  for (const auto& [node, count] : turns) CHECK(count > 50);
  CHECK(rendezvous_nodes(key(1), {}, 2).empty());
}

}  // namespace weft::testing
