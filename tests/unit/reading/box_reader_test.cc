#include "reading/box_reader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "random_runs.h"

namespace weft::testing {
namespace {

// A tensor of bytes in boxes: its elements, and the cells that a store has.
struct Boxed {
  Boxed(const Shape& shape, const Borders& borders, std::mt19937_64& random)
      : grid(must(Grid::of(DType::u8, shape, borders))), elements(grid.bytes()), cells(grid.cells()) {
    for (std::byte& element : elements) element = static_cast<std::byte>(random());
    for (std::uint64_t cell = 0; cell < grid.cells(); ++cell) {
      cells[cell].resize(grid.cell_bytes(cell));
      grid.each_row(cell, {0, grid.bytes()}, [&](const Grid::Row& row) {
        std::copy_n(elements.begin() + static_cast<std::ptrdiff_t>(row.in_tensor), row.length,
                    cells[cell].begin() + static_cast<std::ptrdiff_t>(row.in_cell));
        return true;
      });
    }
  }

  std::vector<std::byte> read(Range range) {
    std::vector<std::byte> out(range.length);
    BoxReader reader(grid, range, out);
    for (const std::uint64_t cell : grid.cells_in(range))
      must(reader.read_cell(cell, [&](std::uint64_t offset, std::span<std::byte> to) -> Status {
        ++reads;
        longest = std::max(longest, to.size());
        bytes += to.size();
        REQUIRE(offset + to.size() <= cells[cell].size());
        std::copy_n(cells[cell].begin() + static_cast<std::ptrdiff_t>(offset), to.size(), to.begin());
        return {};
      }));
    return out;
  }

  void check(Range range) {
    const auto begin = elements.begin() + static_cast<std::ptrdiff_t>(range.offset);
    CHECK(std::ranges::equal(read(range), std::span(begin, range.length)));
  }

  Grid grid;
  std::vector<std::byte> elements;
  std::vector<std::vector<std::byte>> cells;
  std::size_t reads = 0, longest = 0, bytes = 0;
};

class RandomReads {
 public:
  explicit RandomReads(std::uint64_t seed) : random_(seed) {}

  void step() {
    Shape shape;
    Borders borders;
    for (std::uint64_t n = 1 + below(4); n > 0; --n) {
      shape.push_back(1 + below(12));
      borders.push_back(0);
      while (borders.back() < shape.back()) borders.push_back(borders.back() + 1 + below(6));
    }
    Boxed boxed(shape, borders, random_);
    for (int i = 0; i < 10; ++i) {
      const std::uint64_t offset = below(boxed.grid.bytes());
      boxed.check({offset, below(boxed.grid.bytes() - offset + 1)});
    }
  }

  void finish() {}

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  std::mt19937_64 random_;
};

TEST_CASE("random reads of boxes give the elements in C order") {
  run_rounds<RandomReads>(100);
}

TEST_CASE("a read takes one contiguous range of each box that it meets") {
  std::mt19937_64 random(1);
  Boxed columns({256, 64}, {0, 256, 0, 16, 32, 48, 64}, random);
  columns.check({0, 256 * 64});
  CHECK(columns.reads == 4);
  CHECK(columns.bytes == 256 * 64);
  columns.reads = columns.bytes = 0;
  columns.check({64 * 10 + 3, 64 * 20});
  CHECK(columns.reads == 4);
  CHECK(columns.bytes == 64 * 20);
  Boxed cubes({16, 16, 16}, {0, 8, 16, 0, 8, 16, 0, 8, 16}, random);
  cubes.check({0, 16 * 16 * 16});
  CHECK(cubes.reads == 8);
}

TEST_CASE("a large box is read in windows, and its padding is left out") {
  std::mt19937_64 random(1);
  Boxed tall({1 << 16, 20}, {0, 1 << 16, 0, 10, 20}, random);
  tall.check({0, (1 << 16) * 20});
  CHECK(tall.longest <= kBoxWindow);
  CHECK(tall.reads >= 4);
  Boxed padded({4, 3}, {0, 4, 0, 1 << 20}, random);
  padded.check({0, 12});
  CHECK(padded.bytes == 12);
  CHECK(padded.reads == 4);
  Boxed wide({3, 1 << 20}, {0, 3, 0, 1 << 19, 1 << 20}, random);
  wide.check({5, 3 * (1 << 20) - 9});
  CHECK(wide.reads == 6);
}

TEST_CASE("an error of a read is the reader's") {
  std::mt19937_64 random(1);
  const Boxed boxed({4, 4}, {0, 4, 0, 2, 4}, random);
  std::vector<std::byte> out(16);
  int reads = 0;
  BoxReader reader(boxed.grid, {0, 16}, out);
  const Status done = reader.read_cell(0, [&](std::uint64_t, std::span<std::byte>) -> Status {
    ++reads;
    return Error{Errc::io, "no disk"};
  });
  CHECK(done.error().code == Errc::io);
  CHECK(reads == 1);
}

}  // namespace
}  // namespace weft::testing
