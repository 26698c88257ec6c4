#include "publish/cut.h"

#include <doctest/doctest.h>

#include "weft/manifest.h"

using weft::cut_file;
using weft::Range;
using weft::TensorExtent;

namespace {

TensorExtent tensor(std::uint64_t offset, std::uint64_t length) {
  TensorExtent extent;
  extent.offset = offset;
  extent.length = length;
  return extent;
}

}  // namespace

TEST_CASE("an empty file has no range, an opaque one a single range") {
  CHECK(cut_file(0, {})->ranges.empty());
  CHECK(cut_file(7, {})->ranges == std::vector<Range>{{0, 7}});
}

TEST_CASE("tensors and the skeleton between them cover the file") {
  auto cut = cut_file(100, std::vector{tensor(10, 20), tensor(30, 5), tensor(35, 0), tensor(50, 50)});
  REQUIRE(cut.ok());
  CHECK(cut->ranges == std::vector<Range>{{0, 10}, {10, 20}, {30, 5}, {35, 15}, {50, 50}});
  CHECK(cut->tensor_extent == std::vector<std::uint32_t>{1, 2, weft::kNoExtent, 4});
}

TEST_CASE("a file that is all one tensor has one range") {
  auto cut = cut_file(8, std::vector{tensor(0, 8)});
  REQUIRE(cut.ok());
  CHECK(cut->ranges == std::vector<Range>{{0, 8}});
  CHECK(cut->tensor_extent == std::vector<std::uint32_t>{0});
}

TEST_CASE("a layout that breaks its promise is refused") {
  CHECK(cut_file(10, std::vector{tensor(0, 6), tensor(5, 5)}).error().code == weft::Errc::internal);
  CHECK(cut_file(10, std::vector{tensor(5, 6)}).error().code == weft::Errc::internal);
  CHECK(cut_file(10, std::vector{tensor(UINT64_MAX, 2)}).error().code == weft::Errc::internal);
  CHECK(cut_file(10, std::vector{tensor(2, UINT64_MAX)}).error().code == weft::Errc::internal);
}
