#include "publish/cut.h"

#include <doctest/doctest.h>

#include "base/limits.h"
#include "weft/model/manifest.h"

using weft::add_runs;
using weft::cut_file;
using weft::DType;
using weft::FoundTensor;
using weft::place_tensor;
using weft::Range;
using weft::Tensor;
using weft::TensorRun;

namespace {

using Ranges = std::vector<Range>;

Ranges cut(std::uint64_t size, Ranges runs) {
  auto ranges = cut_file(size, std::move(runs));
  REQUIRE(ranges.ok());
  return *ranges;
}

}  // namespace

TEST_CASE("an empty file has no range, an opaque one a single range") {
  CHECK(cut(0, {}).empty());
  CHECK(cut(7, {}) == Ranges{{0, 7}});
}

TEST_CASE("tensors and the skeleton between them cover the file") {
  CHECK(cut(100, {{50, 50}, {10, 20}, {30, 5}}) == Ranges{{0, 10}, {10, 20}, {30, 5}, {35, 15}, {50, 50}});
  CHECK(cut(8, {{0, 8}}) == Ranges{{0, 8}});
}

TEST_CASE("runs that overlap are one range, runs that touch are two") {
  CHECK(cut(100, {{10, 20}, {10, 20}}) == Ranges{{0, 10}, {10, 20}, {30, 70}});
  CHECK(cut(100, {{10, 20}, {25, 20}, {40, 10}, {50, 1}}) == Ranges{{0, 10}, {10, 40}, {50, 1}, {51, 49}});
  CHECK(cut(100, {{0, 100}, {10, 5}, {90, 10}}) == Ranges{{0, 100}});
}

TEST_CASE("a cut is a range where no tensor lies, if it is long enough") {
  const auto cut_with = [](std::uint64_t size, Ranges runs, Ranges cuts) {
    auto ranges = cut_file(size, std::move(runs), std::move(cuts));
    REQUIRE(ranges.ok());
    return *ranges;
  };
  constexpr std::uint64_t k = weft::limits::kCutMin;
  CHECK(cut_with(4 * k, {}, {{k, k}, {2 * k, k}}) == Ranges{{0, k}, {k, k}, {2 * k, k}, {3 * k, k}});
  CHECK(cut_with(4 * k, {}, {{k, k - 1}}) == Ranges{{0, 4 * k}});
  CHECK(cut_with(9 * k, {}, {{k, 2 * k}, {2 * k, 2 * k}}) == Ranges{{0, k}, {k, 3 * k}, {4 * k, 5 * k}});
  // A tensor in a member: the header before it is too short for a range of its own, the rest of the member is not.
  CHECK(cut_with(9 * k, {{k + 128, k}}, {{k, 4 * k}}) ==
        Ranges{{0, k + 128}, {k + 128, k}, {2 * k + 128, 3 * k - 128}, {5 * k, 4 * k}});
  // A run over the end of one cut and the begin of another, and one over a whole cut.
  CHECK(cut_with(9 * k, {{k + 1, 2 * k}, {6 * k, 3 * k}}, {{0, 2 * k}, {2 * k, 3 * k}, {7 * k, k}}) ==
        Ranges{{0, k + 1}, {k + 1, 2 * k}, {3 * k + 1, 2 * k - 1}, {5 * k, k}, {6 * k, 3 * k}});
  CHECK(cut_file(10, {}, {{5, 6}}).error().code == weft::Errc::internal);
  CHECK(cut_file(10, {}, {{2, 0}}).error().code == weft::Errc::internal);
}

TEST_CASE("a run outside the file is refused") {
  CHECK(cut_file(10, {{5, 6}}).error().code == weft::Errc::internal);
  CHECK(cut_file(10, {{UINT64_MAX, 2}}).error().code == weft::Errc::internal);
  CHECK(cut_file(10, {{2, UINT64_MAX}}).error().code == weft::Errc::internal);
  CHECK(cut_file(10, {{2, 0}}).error().code == weft::Errc::internal);
}

TEST_CASE("parts of one tensor that touch are one run, and those of two tensors are two") {
  const FoundTensor tiles{
      "t", DType::u8, {4, 4}, {{1, 20, 4}, {0, 8, 4}, {1, 16, 4}, {1, 40, 4}}, {}, "", {0, 4, 0, 1, 2, 3, 4}};
  const FoundTensor next{"u", DType::u8, {4}, {{1, 24, 4}}, {}, ""};
  std::vector<Ranges> runs(8);
  add_runs(tiles, {5, 7}, runs);
  add_runs(next, {5, 7}, runs);
  CHECK(runs[5] == Ranges{{8, 4}});
  CHECK(runs[7] == Ranges{{16, 8}, {40, 4}, {24, 4}});
  const std::vector<Ranges> cuts = {cut(12, {{8, 4}}), cut(44, runs[7])};
  CHECK(cuts[1] == Ranges{{0, 16}, {16, 8}, {24, 4}, {28, 12}, {40, 4}});
  const Tensor placed = place_tensor(tiles, {0, 1}, cuts);
  CHECK(placed.runs == std::vector<TensorRun>{{1, 1, 4, 4}, {0, 1, 0, 4}, {1, 1, 0, 4}, {1, 4, 0, 4}});
}

TEST_CASE("parts that touch in the order of the memory are one run of the tensor") {
  const std::vector<Ranges> cuts = {cut(20, {{4, 12}})};
  const auto place = [&](FoundTensor found) { return place_tensor(std::move(found), {0}, cuts); };
  const Tensor boxed = place({"t", DType::u8, {2, 6}, {{0, 4, 2}, {0, 6, 10}}, {}, "", {0, 2, 0, 1, 6}});
  CHECK(boxed.runs == std::vector<TensorRun>{{0, 1, 0, 12}});
  CHECK(place({"t", DType::u8, {12}, {{0, 4, 2}, {0, 6, 10}}, {}, ""}).extent == 1);
}

TEST_CASE("a tensor that is a whole range of its own file has an extent, another one has runs") {
  const std::vector<Ranges> cuts = {cut(20, {{4, 8}}), cut(100, {{10, 20}, {15, 25}})};
  const auto place = [&](FoundTensor found) { return place_tensor(std::move(found), {0, 1}, cuts); };
  const Tensor plain = place({"t", DType::u8, {8}, {{0, 4, 8}}, {}, ""});
  CHECK(plain.extent == 1);
  CHECK_FALSE(plain.scattered());
  CHECK(place({"t", DType::u8, {2, 4}, {{0, 4, 8}}, {4, 1}, ""}).extent == 1);  // C order, given explicitly
  CHECK(place({"t", DType::u8, {0}, {}, {}, ""}).extent == weft::kNoExtent);
  const Tensor strided = place({"t", DType::u8, {4, 2}, {{0, 4, 8}}, {1, 4}, ""});
  CHECK(strided.extent == weft::kNoExtent);
  CHECK(strided.runs == std::vector<TensorRun>{{0, 1, 0, 8}});
  CHECK(strided.strides == weft::Strides{1, 4});
  const Tensor tied = place({"t", DType::u8, {5}, {{1, 12, 5}}, {}, ""});
  CHECK(tied.runs == std::vector<TensorRun>{{1, 1, 2, 5}});
  const Tensor chunked = place({"t", DType::u8, {10}, {{1, 38, 2}, {0, 4, 8}}, {}, ""});
  CHECK(chunked.runs == std::vector<TensorRun>{{1, 1, 28, 2}, {0, 1, 0, 8}});
  const Tensor boxed = place({"t", DType::u8, {2, 5}, {{1, 38, 2}, {0, 4, 8}}, {}, "", {0, 2, 0, 1, 5}});
  CHECK(boxed.runs == chunked.runs);
  CHECK(boxed.grid == weft::Borders{0, 2, 0, 1, 5});
  const Tensor padded = place({"t", DType::u8, {2, 3}, {{0, 4, 8}}, {}, "", {0, 2, 0, 4}});
  CHECK(padded.extent == weft::kNoExtent);
  CHECK(padded.runs == std::vector<TensorRun>{{0, 1, 0, 8}});
}
