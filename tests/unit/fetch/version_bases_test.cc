#include "fetch/version_bases.h"

#include <doctest/doctest.h>

namespace weft {
namespace {

ContentId id(std::uint8_t seed) {
  ContentId made{1U << 20U, {}};
  made.root.bytes[0] = seed;
  return made;
}

CodedCounts came(std::uint64_t asked_mib, std::uint64_t given_mib) {
  CodedCounts counts;
  counts.asked_bytes = asked_mib << 20U;
  counts.given_bytes = given_mib << 20U;
  return counts;
}

}  // namespace

TEST_CASE("a damaged base is left out") {
  VersionBases bases("m@2", "m@1", {{id(11), {id(1), 2}}, {id(12), {id(2), 4}}});
  CHECK(bases.find(id(11)) == BasePair{id(1), 2});
  CHECK(!bases.find(id(1)));
  CHECK(bases.leave_out(id(1)));
  CHECK(!bases.leave_out(id(1)));
  CHECK(!bases.find(id(11)));
  CHECK(bases.find(id(12)));
}

TEST_CASE("a version whose chunks do not shrink is asked for plain, once enough of it has come") {
  VersionBases bases("m@2", "m@1", {{id(11), {id(1), 2}}});
  bases.note(came(16, 16));
  CHECK(bases.find_to_code(id(11)));
  bases.note(came(24, 10));
  CHECK(bases.find_to_code(id(11)));
  bases.note(came(100, 90));
  CHECK(!bases.find_to_code(id(11)));
  CHECK(bases.find(id(11)));
}

}  // namespace weft
