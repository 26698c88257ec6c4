#include "format/boxes.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

namespace weft {
namespace {

Error not_placed(std::string_view why) {
  return Error{Errc::unsupported, std::string(why)};
}

Status check_box(const FoundTensor& tensor, const TensorBox& box) {
  const std::size_t dimensions = tensor.shape.size();
  if (box.begin.size() != dimensions || box.size.size() != dimensions)
    return not_placed("a box has other dimensions than the tensor");
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < dimensions; ++i)
    if (box.begin[i] >= tensor.shape[i] || __builtin_add_overflow(box.begin[i], box.size[i], &end))
      return not_placed("a box lies outside of the tensor");
  return {};
}

// Returns the borders that the boxes have in one dimension: all their begins, and the last end.
std::vector<std::uint64_t> borders_of(std::span<const TensorBox> boxes, std::size_t dimension) {
  std::vector<std::uint64_t> borders;
  std::uint64_t end = 0;
  for (const TensorBox& box : boxes) {
    borders.push_back(box.begin[dimension]);
    end = std::max(end, box.begin[dimension] + box.size[dimension]);
  }
  borders.push_back(end);
  std::ranges::sort(borders);
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

using Sides = std::vector<std::vector<std::uint64_t>>;  // the borders of each dimension

// Checks that the sorted boxes are all cells of the grid, in C order.
Status check_cells(std::span<const TensorBox> boxes, const Sides& sides) {
  std::vector<std::size_t> cell(sides.size());
  for (std::size_t number = 0; number < boxes.size(); ++number) {
    const TensorBox& box = boxes[number];
    if (number > 0 && box.begin == boxes[number - 1].begin) return not_placed("two of its boxes overlap");
    for (std::size_t i = 0; i < sides.size(); ++i)
      if (box.begin[i] != sides[i][cell[i]] || box.begin[i] + box.size[i] != sides[i][cell[i] + 1])
        return not_placed("its boxes are no grid: some overlap, are missing, or end at other places than others");
    std::size_t i = sides.size();
    while (i > 0 && ++cell[i - 1] + 1 == sides[i - 1].size()) cell[--i] = 0;
    if ((i == 0) != (number + 1 == boxes.size())) return not_placed("some of its boxes overlap, or are missing");
  }
  return {};
}

// Parts that touch become one.
void add_part(std::vector<TensorPart>& parts, const TensorPart& part) {
  TensorPart* last = parts.empty() ? nullptr : &parts.back();
  if (last != nullptr && last->file == part.file && last->offset + last->length == part.offset)
    last->length += part.length;
  else
    parts.push_back(part);
}

}  // namespace

std::optional<std::uint64_t> box_bytes(DType type, const TensorBox& box) {
  const DTypeInfo* info = dtype_info(type);
  const auto elements = element_count(box.size);
  std::uint64_t bytes = 0;
  if (info == nullptr || info->block_elements != 1 || type == DType::npy_other || !elements ||
      __builtin_mul_overflow(*elements, std::uint64_t{info->block_bytes}, &bytes))
    return std::nullopt;
  return bytes;
}

Status place_boxes(FoundTensor& tensor, std::vector<TensorBox> boxes) {
  std::erase_if(boxes, [](const TensorBox& box) { return std::ranges::find(box.size, 0U) != box.size.end(); });
  const auto elements = element_count(tensor.shape);
  if (elements == 0U && boxes.empty()) return {};
  if (elements == 0U || boxes.empty()) return not_placed("its boxes have other elements than its shape");
  for (const TensorBox& box : boxes) WEFT_CHECK(check_box(tensor, box));
  std::ranges::sort(boxes, {}, &TensorBox::begin);
  Sides sides;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) sides.push_back(borders_of(boxes, i));
  WEFT_CHECK(check_cells(boxes, sides));
  Borders borders;
  for (const std::vector<std::uint64_t>& side : sides) borders.insert(borders.end(), side.begin(), side.end());
  std::vector<TensorPart> cells;
  cells.reserve(boxes.size());
  for (const TensorBox& box : boxes) cells.push_back({box.file, box.offset, 0});
  return place_cells(tensor, std::move(borders), std::move(cells));
}

Status place_cells(FoundTensor& tensor, Borders borders, std::vector<TensorPart> cells) {
  const auto grid = Grid::of(tensor.dtype, tensor.shape, borders);
  if (!grid.ok()) return not_placed(grid.error().message);
  if (grid->cells() != cells.size()) return not_placed("some of its boxes overlap, or are missing");
  const bool runs = grid->cells_are_runs();
  for (std::uint64_t i = 0; i < cells.size(); ++i) {
    cells[i].length = runs ? grid->cell_tensor_bytes(i) : grid->cell_bytes(i);
    add_part(tensor.parts, cells[i]);
  }
  if (!runs) tensor.grid = std::move(borders);
  return {};
}

}  // namespace weft
