#include "peers/chunk_map.h"

#include <doctest/doctest.h>

#include <cstring>

#include "base/limits.h"
#include "base/sha256.h"
#include "testing.h"

namespace weft::testing {
namespace {

ContentId blob(std::uint64_t name, std::uint64_t length) {
  ContentId id;
  id.length = length;
  std::memcpy(id.root.bytes.data(), &name, sizeof name);
  return id;
}

// A manifest of two files. The first blob of the second file is in the first file too.
Manifest two_files(std::uint64_t large) {
  const ContentId a = blob(1, large);
  const ContentId b = blob(2, 100);
  const ContentId c = blob(3, 2 * kDigestChunk);
  File one{"a", large + 100, "", {{0, a}, {large, b}}, {}, {}};
  File two{"b", 100 + c.length, "", {{0, b}, {100, c}}, {}, {}};
  return {{one, two}, {}};
}

}  // namespace

TEST_CASE("each distinct blob's chunks have numbers of their own, in the order of first places") {
  const ChunkMap map(two_files(3 * kDigestChunk + 1));
  CHECK(map.chunks() == 4 + 1 + 2);
  CHECK(map.chunks_per_bit() == 1);
  CHECK(map.number_of(blob(1, 3 * kDigestChunk + 1)) == 0);
  CHECK(map.number_of(blob(2, 100)) == 4);
  CHECK(map.number_of(blob(3, 2 * kDigestChunk)) == 5);
  CHECK(!map.number_of(blob(4, 100)));
}

TEST_CASE("ChunkSet::told() encodes exactly the chunks of the set") {
  const ChunkMap map(two_files(3 * kDigestChunk + 1));
  ChunkSet set(map);
  CHECK(set.none());
  set.add(1, 2);
  set.add(5, 1);
  const HadChunks had = set.told({}, map);
  const ContentId a = blob(1, 3 * kDigestChunk + 1);
  CHECK(map.has(had, {a, 1, 2}));
  CHECK(!map.has(had, {a, 0, 2}));
  CHECK(!map.has(had, {a, 2, 2}));
  CHECK(map.has(had, {blob(3, 2 * kDigestChunk), 0, 1}));
  CHECK(!map.has(had, {blob(3, 2 * kDigestChunk), 0, 2}));
  CHECK(!map.has(had, {blob(4, 100), 0, 1}));
  set.add(0, 7);
  CHECK(set.all());
  CHECK(set.told({}, map).chunks_per_bit == 0);
  CHECK(map.has(set.told({}, map), {blob(3, 2 * kDigestChunk), 0, 2}));
}

TEST_CASE("a large manifest's bits fit, and say less rather than too much") {
  const std::uint64_t large = (limits::kAnnouncedBytesMax * 8 * 3) * kDigestChunk;
  const ChunkMap map(two_files(large));
  CHECK(map.chunks_per_bit() == 4);
  ChunkSet set(map);
  set.add(0, 6);
  const HadChunks had = set.told({}, map);
  CHECK(had.bits.size() <= limits::kAnnouncedBytesMax);
  CHECK(map.has(had, {blob(1, large), 0, 4}));
  CHECK(!map.has(had, {blob(1, large), 4, 2}));
}

TEST_CASE("bits of another manifest's layout are ignored") {
  const ChunkMap map(two_files(3 * kDigestChunk));
  const ChunkRun run{blob(3, 2 * kDigestChunk), 0, 2};
  CHECK(!map.has({{}, "", 2, {255, 255}}, run));
  CHECK(!map.has({{}, "", 1, {}}, run));
  CHECK(map.has({{}, "", 1, {255}}, run));
}

}  // namespace weft::testing
