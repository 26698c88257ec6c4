#include "node/fetch_plan.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

#include "testing.h"

namespace weft::testing {
namespace {

constexpr std::uint64_t kUnit = 4 * kDigestChunk;

Extent extent(std::uint64_t offset, std::uint64_t length, std::uint64_t name) {
  return {offset, {length, Digest{{static_cast<std::uint8_t>(name)}}}};
}

}  // namespace

TEST_CASE("a blob is a unit of its own, a large one is cut at its chunks") {
  const std::vector<Extent> absent{extent(0, 100, 1), extent(100, 50, 2), extent(150, 9 * kDigestChunk + 7, 3),
                                   extent(20 * kDigestChunk, 10, 4)};
  const FetchPlan plan = plan_fetch(absent, kUnit);
  REQUIRE(plan.units.size() == 6);
  CHECK(plan.units[0].length == 100);
  CHECK(plan.units[1].length == 50);
  CHECK(plan.units[2].length == kUnit);
  CHECK(plan.units[3].length == kUnit);
  CHECK(plan.units[4].length == kDigestChunk + 7);
  CHECK(plan.units[5].offset == 20 * kDigestChunk);
}

TEST_CASE("a blob that is in a file twice is fetched once") {
  const FetchPlan plan = plan_fetch(std::vector{extent(0, 10, 1), extent(10, 20, 2), extent(30, 10, 1)}, kUnit);
  CHECK(plan.blobs.size() == 2);
  CHECK(plan.units.size() == 2);
}

TEST_CASE("units of a range are those that overlap it") {
  const FetchPlan plan =
      plan_fetch(std::vector{extent(0, 10 * kDigestChunk, 1), extent(11 * kDigestChunk, 5, 2)}, kUnit);
  REQUIRE(plan.units.size() == 4);
  using Pair = std::pair<std::size_t, std::size_t>;
  CHECK(units_in(plan, {0, 1}) == Pair(0, 1));
  CHECK(units_in(plan, {kUnit - 1, 2}) == Pair(0, 2));
  CHECK(units_in(plan, {kUnit, 1}) == Pair(1, 2));
  CHECK(units_in(plan, {10 * kDigestChunk, kDigestChunk}) == Pair(3, 3));
  CHECK(units_in(plan, {0, 100 * kDigestChunk}) == Pair(0, 4));
  CHECK(units_in(plan, {200 * kDigestChunk, 1}) == Pair(4, 4));
}

TEST_CASE("whatever is absent, the units are its chunks, each once, in place") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<Extent> absent;
    std::uint64_t offset = 0;
    for (std::uint64_t i = 0; i < random() % 40; ++i) {
      if (random() % 3 == 0) offset += random() % 100'000;
      const std::uint64_t length = 1 + random() % (random() % 4 == 0 ? 12 * kDigestChunk : 5000);
      absent.push_back(extent(offset, length, i));
      offset += length;
    }
    const FetchPlan plan = plan_fetch(absent, kUnit);
    std::map<std::pair<std::size_t, std::uint64_t>, int> chunks;
    std::uint64_t end = 0;
    for (const FetchUnit& unit : plan.units) {
      CHECK(unit.length <= kUnit);
      CHECK(unit.offset >= end);
      CHECK(plan.blobs[unit.blob].offset + unit.run.offset() == unit.offset);
      for (std::uint64_t i = 0; i < unit.run.count; ++i) ++chunks[{unit.blob, unit.run.first + i}];
      end = unit.offset + unit.length;
      CHECK(unit.run.length() == unit.length);
    }
    std::size_t expected = 0;
    for (const Extent& one : absent) expected += (one.id.length - 1) / kDigestChunk + 1;
    CHECK(chunks.size() == expected);
    for (const auto& [chunk, times] : chunks) CHECK(times == 1);
  }
}

}  // namespace weft::testing
