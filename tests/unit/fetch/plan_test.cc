#include "fetch/plan.h"

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <random>

#include "testing.h"

namespace weft::testing {
namespace {

Extent extent(std::uint64_t offset, std::uint64_t length, std::uint64_t name) {
  Extent made{offset, {length, {}}};
  std::memcpy(made.id.root.bytes.data(), &name, sizeof name);
  return made;
}

File file_of(std::uint64_t size, std::uint64_t name) {
  File file;
  file.size = size;
  if (size > 0) file.extents.push_back(extent(0, size, name));
  return file;
}

using Pair = std::pair<std::size_t, std::size_t>;

}  // namespace

TEST_CASE("a blob is a unit of its own, a large one is cut at its chunks") {
  const std::vector<Extent> absent{extent(0, 100, 1), extent(100, 50, 2), extent(150, 2 * kDigestChunk + 7, 3),
                                   extent(20 * kDigestChunk, 10, 4)};
  const FetchPlan plan = plan_fetch(absent);
  REQUIRE(plan.units.size() == 6);
  CHECK(plan.units[0].length == 100);
  CHECK(plan.units[1].length == 50);
  CHECK(plan.units[2].length == kDigestChunk);
  CHECK(plan.units[3].length == kDigestChunk);
  CHECK(plan.units[4].length == 7);
  CHECK(plan.units[5].offset == 20 * kDigestChunk);
}

TEST_CASE("a blob that is in a file twice is fetched once") {
  const FetchPlan plan = plan_fetch(std::vector{extent(0, 10, 1), extent(10, 20, 2), extent(30, 10, 1)});
  CHECK(plan.blobs.size() == 2);
  CHECK(plan.units.size() == 2);
}

TEST_CASE("units of a range are those that overlap it") {
  const FetchPlan plan = plan_fetch(std::vector{extent(0, 3 * kDigestChunk, 1), extent(11 * kDigestChunk, 5, 2)});
  REQUIRE(plan.units.size() == 4);
  CHECK(units_in(plan, {0, 1}) == Pair(0, 1));
  CHECK(units_in(plan, {kDigestChunk - 1, 2}) == Pair(0, 2));
  CHECK(units_in(plan, {kDigestChunk, 1}) == Pair(1, 2));
  CHECK(units_in(plan, {10 * kDigestChunk, kDigestChunk}) == Pair(3, 3));
  CHECK(units_in(plan, {0, 100 * kDigestChunk}) == Pair(0, 4));
  CHECK(units_in(plan, {200 * kDigestChunk, 1}) == Pair(4, 4));
}

TEST_CASE("a plan's units are the chunks of the absent extents, each once, at their offsets") {
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
    const FetchPlan plan = plan_fetch(absent);
    std::map<std::pair<std::size_t, std::uint64_t>, int> chunks;
    std::uint64_t end = 0;
    for (const FetchUnit& unit : plan.units) {
      CHECK(unit.length <= kDigestChunk);
      CHECK(unit.offset >= end);
      CHECK(plan.blobs[unit.blob].offset + unit.run.offset() == unit.offset);
      CHECK(unit.run.count == 1);
      ++chunks[{unit.blob, unit.run.first}];
      end = unit.offset + unit.length;
      CHECK(unit.run.length() == unit.length);
    }
    std::size_t expected = 0;
    for (const Extent& one : absent) expected += (one.id.length - 1) / kDigestChunk + 1;
    CHECK(chunks.size() == expected);
    for (const auto& [chunk, times] : chunks) CHECK(times == 1);
  }
}

TEST_CASE("small files of a version make groups of bounded size, and large ones are in none") {
  const std::uint64_t large = kGroupedFileMax;
  Manifest manifest;
  for (std::uint64_t i = 0; i < 3; ++i) manifest.files.push_back(file_of(100, i));
  manifest.files.push_back(file_of(large, 10));
  manifest.files.push_back(file_of(0, 11));
  manifest.files.push_back(file_of(large - 1, 12));
  auto groups = group_files(manifest);
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].first == 0);
  CHECK(groups[0].end == 6);
  CHECK(!is_grouped(manifest.files[3]));
  CHECK(is_grouped(manifest.files[5]));
  for (std::uint64_t i = 0; i < 2 * kGroupBlobsMax; ++i) manifest.files.push_back(file_of(1, 100 + i));
  for (std::uint64_t i = 0; i < 100; ++i) manifest.files.push_back(file_of(large - 1, 100'000 + i));
  groups = group_files(manifest);
  CHECK(groups.size() < 6);
  std::uint32_t end = 0;
  for (const FileGroup& group : groups) {
    CHECK(group.first >= end);
    end = group.end;
    std::uint64_t blobs = 0, bytes = 0;
    for (std::uint32_t file = group.first; file < group.end; ++file) {
      if (!is_grouped(manifest.files[file])) continue;
      CHECK(group_of(groups, file).first == group.first);
      blobs += manifest.files[file].extents.size();
      bytes += manifest.files[file].size;
    }
    CHECK(blobs <= kGroupBlobsMax);
    CHECK(bytes <= kGroupBytesMax);
  }
  CHECK(end == manifest.files.size());
}

TEST_CASE("a group's plan places each blob once, one after the other") {
  const FetchPlan plan =
      plan_group(std::vector{extent(0, 10, 1), extent(10, 20, 2), extent(0, 5, 3), extent(0, 10, 1), extent(7, 30, 4)});
  REQUIRE(plan.blobs.size() == 4);
  std::uint64_t end = 0;
  for (const Extent& blob : plan.blobs) {
    CHECK(blob.offset == end);
    end += blob.id.length;
  }
  CHECK(plan.size() == 65);
  REQUIRE(plan.units.size() == 4);
  CHECK(plan.units[3].run.id == extent(7, 30, 4).id);
}

TEST_CASE("batches of a group are neighbours of bounded number and size that together are the group") {
  std::vector<Extent> absent;
  for (std::uint64_t i = 0; i < 300; ++i) absent.push_back(extent(0, i < 200 ? 100 : 400'000, i));
  const FetchPlan plan = plan_group(absent);
  CHECK(batch_of(plan, 0) == Pair(0, kBatchUnitsMax));
  CHECK(batch_of(plan, kBatchUnitsMax - 1) == Pair(0, kBatchUnitsMax));
  CHECK(next_batch(plan, 5) == Pair(kBatchUnitsMax, 2 * kBatchUnitsMax));
  std::size_t unit = 0;
  while (unit < plan.units.size()) {
    const Pair batch = batch_of(plan, unit);
    CHECK(batch.first == unit);
    CHECK(batch.second - batch.first <= kBatchUnitsMax);
    std::uint64_t bytes = 0;
    for (std::size_t i = batch.first; i < batch.second; ++i) bytes += plan.units[i].length;
    CHECK(bytes <= kBatchBytesMax);
    CHECK(next_batch(plan, unit).first == batch.second);
    REQUIRE(batch.second > unit);
    unit = batch.second;
  }
  CHECK(next_batch(plan, plan.units.size() - 1) == Pair(300, 300));
}

}  // namespace weft::testing
