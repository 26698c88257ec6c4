#include "reading/box_reader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "random_runs.h"

namespace weft::testing {
namespace {

// A tensor of bytes in boxes: its elements, and the memory that a store has.
struct Boxed {
  Boxed(const Shape& shape, const Borders& borders, std::mt19937_64& random)
      : grid(must(Grid::of(DType::u8, shape, borders))), elements(grid.bytes()), memory(grid.memory_bytes()) {
    for (std::byte& element : elements) element = static_cast<std::byte>(random());
    for (std::uint64_t cell = 0; cell < grid.cells(); ++cell)
      grid.each_row(cell, {0, grid.bytes()}, [&](const Grid::Row& row) {
        std::copy_n(elements.begin() + static_cast<std::ptrdiff_t>(row.in_tensor), row.length,
                    memory.begin() + static_cast<std::ptrdiff_t>(row.in_memory));
        return true;
      });
  }

  std::vector<std::byte> read(Range range) {
    std::vector<std::byte> out(range.length);
    BoxReader reader(grid, range, out);
    must(reader.read([&](std::uint64_t offset, std::span<std::byte> to) -> Status {
      ++reads;
      longest = std::max(longest, to.size());
      bytes += to.size();
      REQUIRE(offset + to.size() <= memory.size());
      std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(offset), to.size(), to.begin());
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
  std::vector<std::byte> memory;
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

TEST_CASE("a read takes one contiguous range of each box that it meets, if the boxes are far apart") {
  std::mt19937_64 random(1);
  Boxed columns({4096, 64}, {0, 4096, 0, 16, 32, 48, 64}, random);
  columns.check({64 * 10 + 3, 64 * 20});
  CHECK(columns.reads == 4);
  CHECK(columns.bytes == 64 * 20);
}

TEST_CASE("boxes that are near one another are one read") {
  std::mt19937_64 random(1);
  Boxed cubes({16, 16, 16}, {0, 8, 16, 0, 8, 16, 0, 8, 16}, random);
  cubes.check({0, 16 * 16 * 16});
  CHECK(cubes.reads == 1);
  CHECK(cubes.bytes == 16 * 16 * 16);
  Borders borders = {0, 64};
  for (std::uint64_t column = 0; column <= 1000; ++column) borders.push_back(column);
  Boxed narrow({64, 1000}, borders, random);
  narrow.check({20 * 1000 + 7, 10 * 1000});
  CHECK(narrow.reads == 1);
  CHECK(narrow.bytes <= 64 * 1000);
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
  CHECK(wide.bytes == 3 * (1 << 20) - 9);
}

TEST_CASE("an error of a read is the reader's") {
  std::mt19937_64 random(1);
  const Boxed boxed({4, 4}, {0, 4, 0, 2, 4}, random);
  std::vector<std::byte> out(16);
  int reads = 0;
  BoxReader reader(boxed.grid, {0, 16}, out);
  const Status done = reader.read([&](std::uint64_t, std::span<std::byte>) -> Status {
    ++reads;
    return Error{Errc::io, "no disk"};
  });
  CHECK(done.error().code == Errc::io);
  CHECK(reads == 1);
}

}  // namespace
}  // namespace weft::testing
