#include "weft/grid.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "random_runs.h"

namespace weft::testing {
namespace {

std::string refusal(DType type, const Shape& shape, const Borders& borders) {
  const auto grid = Grid::of(type, shape, borders);
  REQUIRE_FALSE(grid.ok());
  CHECK(grid.error().code == Errc::invalid);
  return grid.error().message;
}

Grid grid_of(const Shape& shape, const Borders& borders, DType type = DType::u8) {
  return must(Grid::of(type, shape, borders));
}

// A small tensor in random boxes. `cell_of` and `at` have the place of each byte of the tensor.
struct Boxes {
  explicit Boxes(std::mt19937_64& random) {
    const auto below = [&](std::uint64_t end) { return random() % end; };
    const std::size_t dimensions = 1 + below(4);
    type = std::vector{DType::u8, DType::f16, DType::f32}[below(3)];
    for (std::size_t i = 0; i < dimensions; ++i) {
      shape.push_back(1 + below(6));
      std::set<std::uint64_t> ends = {shape[i] + (below(3) == 0 ? below(4) : 0)};
      for (std::uint64_t n = below(4); n > 0; --n)
        if (const std::uint64_t end = below(shape[i]); end > 0) ends.insert(end);
      borders.push_back(0);
      borders.insert(borders.end(), ends.begin(), ends.end());
      sides.emplace_back(ends.begin(), ends.end());
    }
    place_bytes();
  }

  // Goes from one element to the next, in C order.
  void place_bytes() {
    const std::uint64_t unit = dtype_info(type)->block_bytes;
    const std::uint64_t elements = element_count(shape).value();
    for (std::uint64_t element = 0; element < elements; ++element) {
      std::uint64_t cell = 0, within = 0, rest = element, before = elements;
      for (std::size_t i = 0; i < shape.size(); ++i) {
        before /= shape[i];
        const std::uint64_t index = rest / before;
        rest %= before;
        const auto end = std::ranges::upper_bound(sides[i], index);
        const std::uint64_t begin = end == sides[i].begin() ? 0 : *(end - 1);
        cell = cell * sides[i].size() + static_cast<std::uint64_t>(end - sides[i].begin());
        within = within * (*end - begin) + index - begin;
      }
      for (std::uint64_t byte = 0; byte < unit; ++byte) {
        cell_of.push_back(cell);
        at.push_back(within * unit + byte);
      }
    }
  }

  DType type = DType::u8;
  Shape shape;
  Borders borders;
  std::vector<std::vector<std::uint64_t>> sides;  // ends of cells
  std::vector<std::uint64_t> cell_of, at;         // by byte of the tensor
};

// Returns where each cell begins in the memory, and where the last one ends.
std::vector<std::uint64_t> begins_of(const Grid& grid) {
  std::vector<std::uint64_t> begins = {0};
  for (std::uint64_t cell = 0; cell < grid.cells(); ++cell) begins.push_back(begins.back() + grid.cell_bytes(cell));
  return begins;
}

void check_range(const Boxes& boxes, const Grid& grid, Range range) {
  const std::vector<std::uint64_t> begins = begins_of(grid);
  REQUIRE(begins.back() == grid.memory_bytes());
  const std::uint64_t end = std::min<std::uint64_t>(range.offset + range.length, boxes.at.size());
  std::set<std::uint64_t> met;
  for (std::uint64_t byte = range.offset; byte < end; ++byte) met.insert(boxes.cell_of[byte]);
  const std::vector<std::uint64_t> cells = grid.cells_in(range);
  REQUIRE(std::ranges::equal(cells, met));
  std::uint64_t bytes = 0;
  for (const std::uint64_t cell : cells) {
    std::uint64_t in_memory = begins[cell], in_tensor = range.offset;
    grid.each_row(cell, range, [&](const Grid::Row& row) {
      REQUIRE(row.length > 0);
      REQUIRE(row.in_memory >= in_memory);
      REQUIRE(row.in_tensor >= in_tensor);
      in_memory = row.in_memory + row.length;
      in_tensor = row.in_tensor + row.length;
      REQUIRE(in_memory <= begins[cell + 1]);
      REQUIRE(in_tensor <= end);
      for (std::uint64_t i = 0; i < row.length; ++i) {
        REQUIRE(boxes.cell_of[row.in_tensor + i] == cell);
        REQUIRE(begins[cell] + boxes.at[row.in_tensor + i] == row.in_memory + i);
      }
      bytes += row.length;
      return true;
    });
  }
  REQUIRE(bytes == end - std::min(end, range.offset));
}

class RandomGrids {
 public:
  explicit RandomGrids(std::uint64_t seed) : random_(seed) {}

  void step() {
    const Boxes boxes(random_);
    CAPTURE(shape_text(boxes.shape));
    CAPTURE(shape_text(boxes.borders));
    const Grid grid = grid_of(boxes.shape, boxes.borders, boxes.type);
    REQUIRE(grid.bytes() == boxes.at.size());
    std::uint64_t together = 0;
    const std::vector<std::uint64_t> begins = begins_of(grid);
    std::vector<std::uint64_t> in_order;  // bytes of the tensor, cell by cell
    for (std::uint64_t cell = 0; cell < grid.cells(); ++cell) {
      together += grid.cell_tensor_bytes(cell);
      grid.each_row(cell, {0, grid.bytes()}, [&](const Grid::Row& row) {
        for (std::uint64_t i = 0; i < row.length; ++i) in_order.push_back(row.in_tensor + i);
        if (grid.cells_are_runs()) REQUIRE(row.in_memory - begins[cell] + row.length == grid.cell_tensor_bytes(cell));
        return true;
      });
    }
    REQUIRE(together == grid.bytes());
    if (grid.cells_are_runs()) REQUIRE(std::ranges::is_sorted(in_order));
    if (!grid.cells_are_runs()) has_boxes_ = true;
    for (int i = 0; i < 20; ++i) check_range(boxes, grid, {random_() % (grid.bytes() + 2), random_() % 40});
    check_range(boxes, grid, {0, UINT64_MAX});
  }

  void finish() const { CHECK(has_boxes_); }

 private:
  std::mt19937_64 random_;
  bool has_boxes_ = false;
};

TEST_CASE("random grids have each byte of the tensor once, where it lies") {
  run_rounds<RandomGrids>(100);
}

TEST_CASE("cells of whole rows are runs, and so are cells of one index before them") {
  CHECK(grid_of({4, 3}, {0, 2, 4, 0, 3}).cells_are_runs());
  CHECK(grid_of({4, 3}, {0, 3, 6, 0, 3}).cells_are_runs());
  CHECK(grid_of({1, 9, 2}, {0, 1, 0, 4, 8, 12, 0, 2}).cells_are_runs());
  CHECK(grid_of({2, 9}, {0, 1, 2, 0, 4, 9}).cells_are_runs());
  CHECK(grid_of({}, {}).cells_are_runs());
  CHECK_FALSE(grid_of({4, 3}, {0, 4, 0, 1, 3}).cells_are_runs());
  CHECK_FALSE(grid_of({4, 3}, {0, 4, 0, 5}).cells_are_runs());
  CHECK_FALSE(grid_of({2, 9}, {0, 2, 0, 4, 9}).cells_are_runs());
}

TEST_CASE("a visitor ends the visits") {
  const Grid grid = grid_of({4, 3}, {0, 4, 0, 1, 3});
  int rows = 0;
  grid.each_row(1, {0, 12}, [&](const Grid::Row&) { return ++rows < 2; });
  CHECK(rows == 2);
}

TEST_CASE("borders that make no grid are refused") {
  CHECK(refusal(DType::u8, {4, 3}, {0, 4}).find("in 2 dimensions, got 1") != std::string::npos);
  CHECK(refusal(DType::u8, {4, 3}, {}).find("in 2 dimensions, got 0") != std::string::npos);
  CHECK(refusal(DType::u8, {4}, {1, 4}).find("from 0 on, got 1") != std::string::npos);
  CHECK(refusal(DType::u8, {4}, {0, 3}).find("end at 4, got 3") != std::string::npos);
  CHECK(refusal(DType::u8, {4, 3}, {0, 0, 3}).find("end at 4, got 0") != std::string::npos);
  CHECK(refusal(DType::u8, {4}, {0, 2, 2, 4}).find("ascend to 4, got 2 after 2") != std::string::npos);
  CHECK(refusal(DType::u8, {4}, {0, 4, 5}).find("ascend to 4, got 5 after 4") != std::string::npos);
  CHECK(refusal(DType::u8, {4}, {0, 4, 0, 4}).find("ascend to 4, got 0 after 4") != std::string::npos);
  CHECK(refusal(DType::u8, {}, {0, 1}).find("from 0 on") != std::string::npos);
  CHECK(refusal(DType::u8, {4, 0}, {0, 4, 0}).find("shape [4, 0]") != std::string::npos);
  CHECK(refusal(DType::u8, Shape(33, 1), {}).find("cannot lie in boxes") != std::string::npos);
  CHECK(refusal(DType::q4_0, {32}, {0, 32}).find("cannot lie in boxes") != std::string::npos);
  CHECK(refusal(DType::npy_other, {4}, {0, 4}).find("cannot lie in boxes") != std::string::npos);
  CHECK(refusal(DType{0}, {4}, {0, 4}).find("cannot lie in boxes") != std::string::npos);
}

TEST_CASE("numbers that would wrap are refused") {
  constexpr std::uint64_t kHuge = 1ULL << 61U;
  CHECK_FALSE(Grid::of(DType::f64, {4}, Borders{0, kHuge}).ok());
  CHECK_FALSE(Grid::of(DType::u8, {4}, Borders{0, UINT64_MAX}).ok());
  CHECK_FALSE(Grid::of(DType::u8, {4, 4}, Borders{0, 1ULL << 32U, 0, 1ULL << 32U}).ok());
  CHECK_FALSE(Grid::of(DType::f32, {kHuge, 2}, Borders{0, kHuge, 0, 1, 2}).ok());
  CHECK_FALSE(Grid::of(DType::f64, {kHuge}, Borders{0, kHuge}).ok());
  CHECK_FALSE(Grid::of(DType::u8, {4, 2}, Borders{0, 4, 0, 1, 1ULL << 62U}).ok());  // each cell alone would do
  constexpr std::uint64_t kLarge = 1ULL << 60U;
  const Grid far = grid_of({3, kLarge}, {0, 3, 0, kLarge - 1, kLarge});
  CHECK(far.cells_in({kLarge - 1, 1}) == std::vector<std::uint64_t>{1});
  CHECK(far.cells_in({3 * kLarge - 1, UINT64_MAX}) == std::vector<std::uint64_t>{1});
  CHECK(far.cells_in({3 * kLarge, 1}).empty());
}

TEST_CASE("of many cells only those that a request meets are found") {
  Shape shape(3, 101);
  Borders borders;
  for (int i = 0; i < 3; ++i)
    for (std::uint64_t border = 0; border <= 101; ++border) borders.push_back(border);
  const Grid grid = grid_of(shape, borders);
  CHECK(grid.cells() == 1030301);
  CHECK(grid.cells_in({10201, 4}) == std::vector<std::uint64_t>{10201, 10202, 10203, 10204});
  CHECK(grid.cells_in({10200, 2}) == std::vector<std::uint64_t>{10200, 10201});
  CHECK(grid.cells_in({0, UINT64_MAX}).size() == 1030301);
}

}  // namespace
}  // namespace weft::testing
