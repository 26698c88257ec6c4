#include "swarm/unit_set.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "testing.h"
#include "unit/swarm/swarm.h"

namespace weft::testing {
namespace {

std::vector<std::uint32_t> members_of(const UnitSet& set) {
  std::vector<std::uint32_t> members;
  set.for_each([&](std::uint32_t unit) { members.push_back(unit); });
  return members;
}

void check_refused(const std::vector<std::byte>& bytes, std::uint32_t units) {
  CAPTURE(bytes.size());
  CAPTURE(units);
  const Result<UnitSet> set = UnitSet::decode(bytes, units);
  REQUIRE_FALSE(set.ok());
  CHECK(set.error().code == Errc::invalid);
}

}  // namespace

TEST_CASE("a set of units survives encoding") {
  for (const std::uint32_t units : {0U, 1U, 63U, 64U, 65U, 32'768U}) {
    CAPTURE(units);
    UnitSet some(units);
    for (std::uint32_t unit = 0; unit < units; unit += 3) some.add(unit);
    if (units != 0) some.add(units - 1);
    for (const UnitSet& set : {UnitSet(units), some, UnitSet::full(units)}) {
      const std::vector<std::byte> bytes = set.encode();
      CHECK(bytes.size() == (units + 7) / 8);
      const UnitSet read = must(UnitSet::decode(bytes, units));
      CHECK(read == set);
      CHECK(read.count() == set.count());
      CHECK(members_of(read) == members_of(set));
    }
  }
}

TEST_CASE("the lowest bit of the first byte is the first unit") {
  const std::vector<std::byte> bytes = {std::byte{0x01}, std::byte{0x82}};
  CHECK(set_of(16, {0, 9, 15}).encode() == bytes);
}

TEST_CASE("a set of units of another length is refused") {
  for (const std::uint32_t units : {0U, 1U, 64U, 65U, 32'768U}) {
    const std::size_t length = (std::size_t{units} + 7) / 8;
    for (const std::size_t wrong : {std::size_t{0}, length - 1, length + 1, length + 8, std::size_t{1} << 20U})
      if (wrong != length && wrong <= std::size_t{1} << 20U) check_refused(std::vector<std::byte>(wrong), units);
  }
}

TEST_CASE("a set of units with a unit beyond the last one is refused") {
  check_refused({std::byte{0x02}}, 1);
  check_refused({std::byte{0x80}}, 7);
  std::vector<std::byte> bytes(9);
  for (unsigned bit = 1; bit < 8; ++bit) {
    bytes[8] = static_cast<std::byte>(1U << bit);
    check_refused(bytes, 65);
  }
  bytes[8] = std::byte{1};
  CHECK(members_of(must(UnitSet::decode(bytes, 65))) == std::vector<std::uint32_t>{64});
  const std::vector<std::byte> ones(8, std::byte{0xFF});
  CHECK(must(UnitSet::decode(ones, 64)).all());
  check_refused(ones, 63);
}

TEST_CASE("units are added and removed once, and those beyond the last one never") {
  UnitSet set(65);
  CHECK(set.add(64));
  CHECK_FALSE(set.add(64));
  CHECK(set.has(64));
  CHECK_FALSE(set.has(63));
  CHECK_FALSE(set.add(65));
  CHECK_FALSE(set.add(4'294'967'295U));
  CHECK_FALSE(set.has(65));
  CHECK(set.count() == 1);
  CHECK_FALSE(set.remove(0));
  CHECK_FALSE(set.remove(65));
  CHECK(set.remove(64));
  CHECK(set.count() == 0);
  CHECK(set == UnitSet(65));
}

TEST_CASE("a full set has each unit and no other") {
  for (const std::uint32_t units : {0U, 1U, 63U, 64U, 65U, 128U}) {
    UnitSet added(units);
    for (std::uint32_t unit = 0; unit < units; ++unit) added.add(unit);
    CHECK(added == UnitSet::full(units));
    CHECK(added.all());
    CHECK_FALSE(added.has(units));
    if (units == 0) continue;
    CHECK(added.remove(units - 1));
    CHECK_FALSE(added.all());
  }
}

TEST_CASE("the first unit that another set lacks is found in each word") {
  CHECK_FALSE(UnitSet(130).first_not_in(UnitSet(130)));
  CHECK_FALSE(set_of(130, {0, 64, 129}).first_not_in(set_of(130, {0, 1, 64, 129})));
  CHECK(set_of(130, {0, 64, 129}).first_not_in(set_of(130, {64, 129})) == 0);
  CHECK(set_of(130, {0, 64, 129}).first_not_in(set_of(130, {0, 129})) == 64);
  CHECK(set_of(130, {0, 64, 129}).first_not_in(set_of(130, {0, 64})) == 129);
}

TEST_CASE("a set contains its parts") {
  const UnitSet set = set_of(130, {0, 64, 129});
  CHECK(set.contains(set));
  CHECK(set.contains(UnitSet(130)));
  CHECK(set.contains(set_of(130, {64})));
  CHECK_FALSE(set.contains(set_of(130, {64, 65})));
  CHECK_FALSE(set.contains(UnitSet::full(130)));
}

TEST_CASE("sets of different lengths are compared by their units") {
  const UnitSet longer = set_of(300, {1, 299}), shorter = set_of(10, {1});
  CHECK(longer.contains(shorter));
  CHECK_FALSE(shorter.contains(longer));
  CHECK(longer.first_not_in(shorter) == 299);
  CHECK_FALSE(shorter.first_not_in(longer));
}

}  // namespace weft::testing
