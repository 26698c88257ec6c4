#include "weft/grid.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/limits.h"

namespace weft {
namespace {

template <class... Args>
Error no_grid(fmt::format_string<Args...> format, Args&&... args) {
  return Error{Errc::invalid, fmt::format(format, std::forward<Args>(args)...)};
}

// Moves `row` to the next row of the cell, in C order. Returns false after the last one.
template <class Spans>
bool advance(std::vector<std::uint64_t>& row, const Spans& spans, std::size_t dimensions) {
  for (std::size_t i = dimensions; i-- > 0;) {
    if (++row[i] < spans[i].end) return true;
    row[i] = spans[i].begin;
  }
  return false;
}

// Returns the first row of the cell that is not before `from` in C order; nothing if all rows are before it.
template <class Spans>
std::optional<std::vector<std::uint64_t>> first_row(const std::vector<std::uint64_t>& from, const Spans& spans,
                                                    std::size_t dimensions) {
  std::vector<std::uint64_t> row;
  for (std::size_t i = 0; i < dimensions; ++i) row.push_back(spans[i].begin);
  for (std::size_t i = 0; i < dimensions && from[i] >= spans[i].begin; ++i) {
    if (from[i] >= spans[i].end) return advance(row, spans, i) ? std::optional(row) : std::nullopt;
    row[i] = from[i];
  }
  return row;
}

}  // namespace

Result<Grid> Grid::of(DType type, const Shape& shape, std::span<const std::uint64_t> borders) {
  const DTypeInfo* info = dtype_info(type);
  if (info == nullptr || info->block_elements != 1 || type == DType::npy_other)
    return no_grid("element type {} cannot lie in boxes", static_cast<int>(type));
  if (shape.size() > limits::kDimensionsMax || !element_count(shape).value_or(0))
    return no_grid("a tensor of shape {} cannot lie in boxes", shape_text(shape));
  Grid grid;
  WEFT_TRY(grid.sides_, sides_of(shape, borders));
  WEFT_CHECK(grid.fold(info->block_bytes));
  WEFT_CHECK(grid.measure());
  return grid;
}

// Each dimension has at least the borders 0 and its end, so a 0 begins the next dimension.
Result<std::vector<Grid::Side>> Grid::sides_of(const Shape& shape, std::span<const std::uint64_t> borders) {
  std::vector<Side> sides;
  for (const std::uint64_t border : borders) {
    if (border == 0 && sides.size() < shape.size()) sides.push_back({shape[sides.size()], {}});
    if (sides.empty()) return no_grid("expected borders from 0 on, got {}", border);
    std::vector<std::uint64_t>& known = sides.back().borders;
    if (!known.empty() && (border <= known.back() || known.back() >= sides.back().length))
      return no_grid("expected borders that ascend to {}, got {} after {}", sides.back().length, border, known.back());
    known.push_back(border);
  }
  if (sides.size() != shape.size())
    return no_grid("expected borders in {} dimensions, got {}", shape.size(), sides.size());
  for (const Side& side : sides)
    if (side.borders.back() < side.length)
      return no_grid("expected borders that end at {}, got {}", side.length, side.borders.back());
  return sides;
}

// Unites the inner dimensions that are not cut with the elements, and counts the last dimension in bytes.
Status Grid::fold(std::uint64_t element_bytes) {
  const auto uncut = [](const Side& side) { return side.cells() == 1 && side.borders.back() == side.length; };
  std::uint64_t unit = element_bytes;
  bool fits = true;
  while (!sides_.empty() && uncut(sides_.back())) {
    fits = fits && !__builtin_mul_overflow(unit, sides_.back().length, &unit);
    sides_.pop_back();
  }
  if (sides_.empty()) sides_.push_back({1, {0, 1}});
  Side& last = sides_.back();
  fits = fits && !__builtin_mul_overflow(last.length, unit, &last.length);
  for (std::uint64_t& border : last.borders) fits = fits && !__builtin_mul_overflow(border, unit, &border);
  return fits ? Status{} : no_grid("a tensor in boxes has more than 2^64 bytes");
}

Status Grid::measure() {
  bool fits = true;
  for (const Side& side : sides_)
    fits = fits && !__builtin_mul_overflow(memory_bytes_, side.borders.back(), &memory_bytes_);
  if (!fits || memory_bytes_ > limits::kVersionBytesMax)
    return no_grid("expected at most {} bytes in boxes", limits::kVersionBytesMax);
  for (const Side& side : sides_) {  // no cell is empty, so both products are at most memory_bytes_
    bytes_ *= side.length;
    cells_ *= side.cells();
  }
  return {};
}

Grid::Span Grid::span_of(const Side& side, std::uint64_t cell) {
  const std::size_t at = cell % side.cells();
  return {side.borders[at], std::min(side.borders[at + 1], side.length), side.borders[at + 1]};
}

std::vector<Grid::Span> Grid::spans_of(std::uint64_t cell) const {
  std::vector<Span> spans(sides_.size());
  for (std::size_t i = sides_.size(); i-- > 0; cell /= sides_[i].cells()) spans[i] = span_of(sides_[i], cell);
  return spans;
}

std::vector<std::uint64_t> Grid::indices_of(std::uint64_t byte) const {
  std::vector<std::uint64_t> indices(sides_.size());
  for (std::size_t i = sides_.size(); i-- > 0;) {
    indices[i] = byte % sides_[i].length;
    byte /= sides_[i].length;
  }
  return indices;
}

// There may be millions of cells, so these three take no memory.
std::uint64_t Grid::offset_of(std::uint64_t cell) const {
  std::uint64_t offset = 0, inner = 1;  // `inner`: the memory of one index of the dimension, in all cells
  for (std::size_t i = sides_.size(); i-- > 0; cell /= sides_[i].cells()) {
    const Span span = span_of(sides_[i], cell);
    offset = span.begin * inner + span.stored() * offset;
    inner *= sides_[i].borders.back();
  }
  return offset;
}

std::uint64_t Grid::cell_bytes(std::uint64_t cell) const {
  std::uint64_t bytes = 1;
  for (std::size_t i = sides_.size(); i-- > 0; cell /= sides_[i].cells()) bytes *= span_of(sides_[i], cell).stored();
  return bytes;
}

std::uint64_t Grid::cell_tensor_bytes(std::uint64_t cell) const {
  std::uint64_t bytes = 1;
  for (std::size_t i = sides_.size(); i-- > 0; cell /= sides_[i].cells()) {
    const Span span = span_of(sides_[i], cell);
    bytes *= span.end - span.begin;
  }
  return bytes;
}

bool Grid::cells_are_runs() const {
  return std::all_of(sides_.begin(), sides_.end() - 1, [](const Side& side) {
    return side.cells() == side.length && side.borders.back() == side.length;
  });
}

// Finds the cells between two bytes of the tensor. In the dimensions before `dimension` the indices are chosen. They
// are those of the first byte if `from_first`, and those of the last byte if `to_last`.
class Grid::Met {
 public:
  Met(const Grid& grid, std::uint64_t first, std::uint64_t last)
      : grid_(grid), first_(grid.indices_of(first)), last_(grid.indices_of(last)) {}

  void add(std::size_t dimension, std::uint64_t before, bool from_first, bool to_last) {
    if (dimension == grid_.sides_.size()) return cells.push_back(before);
    const Side& side = grid_.sides_[dimension];
    const std::uint64_t first = from_first ? first_[dimension] : 0;
    const std::uint64_t last = to_last ? last_[dimension] : side.length - 1;
    const auto at = [&](std::uint64_t index) {
      return static_cast<std::size_t>(std::ranges::upper_bound(side.borders, index) - side.borders.begin()) - 1;
    };
    for (std::size_t i = at(first); i <= at(last); ++i) {
      const std::uint64_t cell = before * side.cells() + i;
      // The indices within the cell for which all inner indices are wanted.
      const std::uint64_t begin = std::max(side.borders[i], from_first ? first + 1 : first);
      const std::uint64_t end = std::min(side.borders[i + 1], to_last ? last : last + 1);
      const bool has_first = from_first && side.borders[i] <= first, has_last = to_last && last < side.borders[i + 1];
      if (begin < end)
        add(dimension + 1, cell, false, false);
      else if (first == last)
        add(dimension + 1, cell, from_first, to_last);
      else {
        if (has_first) add(dimension + 1, cell, true, false);
        if (has_last) add(dimension + 1, cell, false, true);
      }
    }
  }

  std::vector<std::uint64_t> cells;

 private:
  const Grid& grid_;
  const std::vector<std::uint64_t> first_, last_;
};

std::vector<std::uint64_t> Grid::cells_in(Range range) const {
  if (range.offset >= bytes_ || range.length == 0) return {};
  const std::uint64_t end = range.offset + std::min(range.length, bytes_ - range.offset);
  Met met(*this, range.offset, end - 1);
  met.add(0, 0, true, true);
  std::ranges::sort(met.cells);
  met.cells.erase(std::unique(met.cells.begin(), met.cells.end()), met.cells.end());
  return std::move(met.cells);
}

void Grid::each_row(std::uint64_t cell, Range range, const std::function<bool(const Row&)>& visit) const {
  const std::vector<Span> spans = spans_of(cell);
  const std::size_t outer = sides_.size() - 1;
  const Span& inner = spans.back();
  const std::uint64_t end = range.offset + std::min(range.length, bytes_ - std::min(range.offset, bytes_));
  if (range.offset >= end) return;
  const std::uint64_t begin = offset_of(cell);
  auto row = first_row(indices_of(range.offset), spans, outer);
  for (bool more = row.has_value(); more; more = advance(*row, spans, outer)) {
    std::uint64_t in_cell = 0, in_tensor = 0;
    for (std::size_t i = 0; i < outer; ++i) {
      in_cell = in_cell * spans[i].stored() + (*row)[i] - spans[i].begin;
      in_tensor = in_tensor * sides_[i].length + (*row)[i];
    }
    in_cell *= inner.stored();
    in_tensor = in_tensor * sides_[outer].length + inner.begin;
    if (in_tensor >= end) return;
    const std::uint64_t skipped = std::max(range.offset, in_tensor) - in_tensor;
    const std::uint64_t length = std::min(inner.end - inner.begin, end - in_tensor);
    if (skipped < length && !visit({begin + in_cell + skipped, in_tensor + skipped, length - skipped})) return;
  }
}

}  // namespace weft
