// Reads a range of a tensor that lies in boxes: contiguous ranges of its memory, whose rows it moves to their places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weft/content.h"
#include "weft/grid.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::uint64_t kBoxWindow = 256U << 10U;  // bytes that one read asks for, unless a row is longer
// Bytes between two rows that one read may include: padding, or other rows of cells that touch. A read of their own
// would take longer than the copy of these bytes.
inline constexpr std::uint64_t kBoxGapMax = 16U << 10U;
inline constexpr std::size_t kBoxRowsMax = 16'384;  // rows of one read

// One read. Takes at most kBoxWindow bytes of memory, and 24 for each of kBoxRowsMax rows. One thread.
class BoxReader {
 public:
  // Reads the bytes at an offset of the memory; fills all of `out` or fails.
  using ReadMemory = std::function<Status(std::uint64_t offset, std::span<std::byte> out)>;

  // `out` has the length of the range. It and the grid outlive the reader.
  BoxReader(const Grid& grid, Range range, std::span<std::byte> out) : grid_(grid), range_(range), out_(out) {}

  // Fills the range. Call it once.
  Status read(const ReadMemory& read);

 private:
  bool fits(const Grid::Row& row) const;
  Status flush(const ReadMemory& read);
  std::span<std::byte> place_of(const Grid::Row& row) const;

  const Grid& grid_;
  const Range range_;
  const std::span<std::byte> out_;
  std::vector<Grid::Row> rows_;  // of the next read
  std::vector<std::byte> window_;
};

}  // namespace weft
