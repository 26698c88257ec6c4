#include "weft/bytes/run_list.h"

#include <doctest/doctest.h>

#include <vector>

namespace weft {
namespace {

using Pair = std::pair<std::size_t, std::size_t>;

// [10, 20), [20, 25), [40, 50)
const std::vector<Range> kRuns{{10, 10}, {20, 5}, {40, 10}};

// A run that merges only with runs of its own colour.
struct Coloured {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  int colour = 0;
};
bool goes_on(const Coloured& last, const Coloured& next) {
  return end_of(last) == next.offset && last.colour == next.colour;
}

}  // namespace

TEST_CASE("a run that goes on where the last one ends makes it longer") {
  std::vector<Range> runs;
  CHECK_FALSE(append_run(runs, {5, 5}));
  CHECK(append_run(runs, {10, 1}));
  CHECK_FALSE(append_run(runs, {12, 3}));
  CHECK(runs == std::vector<Range>{{5, 6}, {12, 3}});
}

TEST_CASE("each kind of run says itself what goes on") {
  std::vector<Coloured> runs;
  CHECK_FALSE(append_run(runs, {0, 5, 1}));
  CHECK(append_run(runs, {5, 5, 1}));
  CHECK_FALSE(append_run(runs, {10, 5, 2}));
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].length == 10);
}

TEST_CASE("run_at() returns the first run that ends after the byte") {
  for (const auto& row : std::vector<std::pair<std::uint64_t, std::ptrdiff_t>>{
           {0, 0}, {10, 0}, {19, 0}, {20, 1}, {24, 1}, {25, 2}, {39, 2}, {49, 2}, {50, 3}}) {
    const auto [offset, number] = row;
    CAPTURE(row.first);
    CHECK(run_at(kRuns, offset) - kRuns.begin() == number);
  }
}

TEST_CASE("a range overlaps the runs that share a byte with it") {
  CHECK(runs_in(kRuns, {0, 10}) == Pair{0, 0});
  CHECK(runs_in(kRuns, {0, 11}) == Pair{0, 1});
  CHECK(runs_in(kRuns, {19, 2}) == Pair{0, 2});
  CHECK(runs_in(kRuns, {24, 100}) == Pair{1, 3});
  CHECK(runs_in(kRuns, {25, 15}) == Pair{2, 2});
  CHECK(runs_in(kRuns, {50, 1}) == Pair{3, 3});
  CHECK_FALSE(overlaps_any(kRuns, {25, 15}));
  CHECK(overlaps_any(kRuns, {25, 16}));
}

TEST_CASE("runs of content have the length of their content") {
  const std::vector<Extent> extents{{0, {100, {}}, 0}, {100, {50, {}}, 0}};
  CHECK(end_of(extents[1]) == 150);
  CHECK(runs_in(extents, {99, 1}) == Pair{0, 1});
  CHECK(runs_in(extents, {100, 1}) == Pair{1, 2});
}

TEST_CASE("two ranges overlap in what they share") {
  CHECK(overlap({0, 10}, {5, 10}) == Range{5, 5});
  CHECK(overlap({0, 20}, {5, 10}) == Range{5, 10});
  CHECK(overlap({0, 5}, {5, 10}).length == 0);
  CHECK(overlap({0, 5}, {7, 10}).length == 0);
}

}  // namespace weft
