// Tensors in boxes (base/tensors/grid.cc): borders in each dimension cut a tensor into the cells of a grid. The memory
// of such a tensor consists of its cells, one after the other in C order, with the padding of each cell. The elements
// of a cell are in C order too. Shards and chunks of arrays lie so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weft/content.h"
#include "weft/dtype.h"
#include "weft/result.h"

namespace weft {

// For each dimension of a shape 0, and then the ends of its cells, which ascend. The last end may be larger than the
// dimension: elements beyond the shape are padding, which cells contain and the tensor does not.
using Borders = std::vector<std::uint64_t>;

// A grid of cells, numbered in C order. Offsets are in bytes: those of the tensor are of its elements in C order, those
// of the memory are of the cells.
class Grid {
 public:
  // Bytes that are together in the memory and in the tensor.
  struct Row {
    std::uint64_t in_memory = 0;
    std::uint64_t in_tensor = 0;
    std::uint64_t length = 0;
  };

  // Takes memory in proportion to the borders. Errc::invalid: they are no borders of this shape, a dimension is 0, the
  // type is packed or unknown, or the memory has more than limits::kVersionBytesMax bytes.
  static Result<Grid> of(DType type, const Shape& shape, std::span<const std::uint64_t> borders);

  std::uint64_t cells() const { return cells_; }
  std::uint64_t bytes() const { return bytes_; }                // of the tensor
  std::uint64_t memory_bytes() const { return memory_bytes_; }  // of all cells, with padding
  std::uint64_t cell_bytes(std::uint64_t cell) const;           // with padding
  std::uint64_t cell_tensor_bytes(std::uint64_t cell) const;    // without padding
  // True if the tensor needs no grid: its cells without their padding, one after the other, are its elements in C
  // order.
  bool cells_are_runs() const;
  // Returns the cells that have some of these bytes of the tensor, ascending.
  std::vector<std::uint64_t> cells_in(Range range) const;
  // Visits the rows of a cell within these bytes of the tensor, ascending in both. All rows of a cell come before those
  // of the next cell in the memory. A false result ends the visits.
  void each_row(std::uint64_t cell, Range range, const std::function<bool(const Row&)>& visit) const;

 private:
  // A dimension. The last one has all inner dimensions in it that are not cut, and its unit is a byte.
  struct Side {
    std::uint64_t length = 0;
    std::vector<std::uint64_t> borders;
    std::size_t cells() const { return borders.size() - 1; }
  };
  // The indices of a cell in one dimension. Those from `end` on are padding.
  struct Span {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t stored_end = 0;
    std::uint64_t stored() const { return stored_end - begin; }
  };
  class Met;

  static Result<std::vector<Side>> sides_of(const Shape& shape, std::span<const std::uint64_t> borders);
  Status fold(std::uint64_t element_bytes);
  Status measure();
  // `cell`: any number with the side's own one as its remainder.
  static Span span_of(const Side& side, std::uint64_t cell);
  std::vector<Span> spans_of(std::uint64_t cell) const;
  std::uint64_t offset_of(std::uint64_t cell) const;                // in the memory
  std::vector<std::uint64_t> indices_of(std::uint64_t byte) const;  // of each dimension

  std::vector<Side> sides_;  // at least one
  std::uint64_t cells_ = 1;
  std::uint64_t bytes_ = 1;
  std::uint64_t memory_bytes_ = 1;
};

}  // namespace weft
