#include "daemon/health.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace weft {
namespace {

using Sole = Result<std::vector<SoleVersion>>;

SoleVersion version_on(const std::string& model, const std::string& holder, bool present) {
  return {{model, 1}, {}, 5, 1, holder, holder, present};
}

ClusterHealth with_copies() {
  ClusterHealth health;
  health.nodes.resize(1);
  health.nodes[0].node = "id3";
  renew_copies(
      health, Sole({version_on("m", "id3", false)}), [](const std::string&) { return "n3"; }, 100);
  return health;
}

void renew(ClusterHealth& health, const Sole& sole) {
  renew_copies(
      health, sole, [](const std::string&) { return "n3"; }, 200);
}

TEST_CASE("a look for copies counts the versions of each node") {
  const ClusterHealth health = with_copies();
  CHECK((health.copies_known && health.copies_ns == 100));
  REQUIRE(health.sole.size() == 1);
  CHECK((health.sole[0].node == "n3" && health.sole[0].absent));
  CHECK(health.nodes[0].owned_versions == 1);
}

TEST_CASE("two nodes of one name are told apart by their ids") {
  ClusterHealth health;
  renew(health, Sole({version_on("a", "id3", false), version_on("b", "id4", false), version_on("c", "id3", false)}));
  REQUIRE(health.sole.size() == 2);
  CHECK((health.sole[0].id == "id3" && health.sole[0].versions == 2));
  CHECK((health.sole[1].id == "id4" && health.sole[1].node == "n3"));
}

TEST_CASE("a look for copies that was cancelled changes nothing") {
  ClusterHealth health = with_copies();
  renew(health, Error{Errc::cancelled, "interrupted"});
  CHECK((health.copies_known && health.copies_ns == 100 && health.copies_problem.empty()));
  CHECK(health.sole.size() == 1);
  CHECK(health.nodes[0].owned_bytes == 5);
}

TEST_CASE("a look for copies that failed keeps the versions of the one before beside its problem") {
  ClusterHealth health = with_copies();
  renew(health, Error{Errc::unreachable, "n2 does not answer"});
  CHECK((!health.copies_known && health.copies_ns == 200 && health.copies_problem == "n2 does not answer"));
  CHECK(health.sole.size() == 1);
  renew(health, Sole(std::vector<SoleVersion>()));
  CHECK((health.copies_known && health.sole.empty() && health.nodes[0].owned_versions == 0));
}

}  // namespace
}  // namespace weft
