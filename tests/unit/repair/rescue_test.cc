#include "repair/rescue.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <vector>

using namespace weft;

namespace {

Extent extent(std::uint64_t length, std::uint8_t root, std::uint64_t head) {
  return {0, {length, Digest{{root}}}, head};
}

std::vector<ContentId> found(const WantedBlobs& wanted, std::uint64_t length, std::uint64_t head) {
  const std::span<const ContentId> ids = wanted.find(length, head);
  return {ids.begin(), ids.end()};
}

}  // namespace

TEST_CASE("wanted blobs are found by the hash of their first bytes, the longest first") {
  const Extent small = extent(10, 1, 7), middle = extent(100, 2, 7), large = extent(200, 3, 7),
               other = extent(64, 4, 8);
  WantedBlobs wanted;
  CHECK(wanted.empty());
  for (const Extent& each : {small, middle, large, other, large, extent(0, 5, 9)}) wanted.add(each);
  CHECK(wanted.head_lengths() == std::vector<std::uint64_t>{10, kExtentHeadBytes});
  CHECK(found(wanted, 10, 7) == std::vector<ContentId>{small.id});
  CHECK(found(wanted, kExtentHeadBytes, 7) == std::vector<ContentId>{large.id, middle.id});
  CHECK(found(wanted, kExtentHeadBytes, 8) == std::vector<ContentId>{other.id});
  CHECK(found(wanted, kExtentHeadBytes, 9).empty());
  CHECK(found(wanted, 11, 7).empty());

  wanted.erase(large.id);
  wanted.erase(large.id);
  CHECK_FALSE(wanted.contains(large.id));
  CHECK(found(wanted, kExtentHeadBytes, 7) == std::vector<ContentId>{middle.id});
  for (const Extent& each : {small, middle, other}) wanted.erase(each.id);
  CHECK(wanted.empty());
}
