#include "format/boxes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "builders.h"
#include "format/layout.h"
#include "random_runs.h"

namespace weft::testing {
namespace {

FoundTensor tensor_of(const Shape& shape, DType type = DType::f32) {
  FoundTensor tensor;
  tensor.dtype = type;
  tensor.shape = shape;
  return tensor;
}

Error refusal(const Shape& shape, const std::vector<TensorBox>& boxes, DType type = DType::f32) {
  FoundTensor tensor = tensor_of(shape, type);
  const Status placed = place_boxes(tensor, boxes);
  REQUIRE_FALSE(placed.ok());
  CHECK(placed.error().code == Errc::unsupported);
  return placed.error();
}

using Places = std::vector<Range>;
Places places(const FoundTensor& tensor) {
  Places out;
  for (const TensorPart& part : tensor.parts) out.push_back({part.offset, part.length});
  return out;
}

TEST_CASE("boxes of columns are a grid, in any order") {
  FoundTensor tensor = tensor_of({4, 6});
  must(place_boxes(tensor, {{1, 500, {0, 4}, {4, 2}}, {0, 0, {0, 0}, {4, 3}}, {2, 100, {0, 3}, {4, 1}}}));
  CHECK(tensor.grid == Borders{0, 4, 0, 3, 4, 6});
  CHECK(places(tensor) == Places{{0, 48}, {100, 16}, {500, 32}});
  CHECK(tensor.parts[2].file == 1);
}

TEST_CASE("padding belongs to a cell") {
  FoundTensor tensor = tensor_of({3, 5});
  std::vector<TensorBox> boxes;
  for (std::uint64_t i = 0; i < 4; ++i) boxes.push_back({0, 100 * i, {i / 2 * 2, i % 2 * 4}, {2, 4}});
  must(place_boxes(tensor, boxes));
  CHECK(tensor.grid == Borders{0, 2, 4, 0, 4, 8});
  CHECK(places(tensor) == Places{{0, 32}, {100, 32}, {200, 32}, {300, 32}});
}

TEST_CASE("cells that touch in their order are one part of the memory") {
  FoundTensor tensor = tensor_of({4, 4});
  must(place_boxes(
      tensor, {{0, 116, {2, 0}, {2, 2}}, {0, 132, {2, 2}, {2, 2}}, {0, 16, {0, 2}, {2, 2}}, {0, 0, {0, 0}, {2, 2}}}));
  CHECK(tensor.grid == Borders{0, 2, 4, 0, 2, 4});
  CHECK(places(tensor) == Places{{0, 32}, {116, 32}});
  tensor = tensor_of({4, 4});
  must(place_boxes(tensor, {{0, 32, {0, 0}, {4, 2}}, {0, 0, {0, 2}, {4, 2}}}));
  CHECK(places(tensor) == Places{{32, 32}, {0, 32}});
}

TEST_CASE("boxes of whole rows are parts, which end at the shape and unite where they touch") {
  FoundTensor tensor = tensor_of({5, 2});
  must(place_boxes(tensor, {{0, 16, {2, 0}, {2, 2}}, {0, 0, {0, 0}, {2, 2}}, {0, 64, {4, 0}, {2, 2}}}));
  CHECK(tensor.grid.empty());
  CHECK(places(tensor) == Places{{0, 32}, {64, 8}});
  tensor = tensor_of({1, 4});
  must(place_boxes(tensor, {{0, 8, {0, 2}, {1, 2}}, {1, 0, {0, 0}, {1, 2}}}));
  CHECK(tensor.grid.empty());
  CHECK(places(tensor) == Places{{0, 8}, {8, 8}});
}

TEST_CASE("scalars and empty tensors are not boxed") {
  FoundTensor scalar = tensor_of({});
  must(place_boxes(scalar, {{0, 8, {}, {}}}));
  CHECK(scalar.grid.empty());
  CHECK(places(scalar) == Places{{8, 4}});
  FoundTensor empty = tensor_of({0, 3});
  must(place_boxes(empty, {{0, 8, {0, 0}, {0, 3}}}));
  CHECK(empty.parts.empty());
  FoundTensor uneven = tensor_of({2, 2});
  must(place_boxes(uneven, {{0, 8, {0, 0}, {2, 2}}, {1, 8, {2, 0}, {0, 2}}}));
  CHECK(places(uneven) == Places{{8, 16}});
}

TEST_CASE("boxes that overlap or leave elements out are refused") {
  CHECK(says(refusal({4, 4}, {{0, 0, {0, 0}, {4, 2}}}), "end at 4, got 2"));
  CHECK(says(refusal({4, 4}, {{0, 0, {0, 2}, {4, 2}}}), "borders"));
  CHECK(says(refusal({4, 4}, {}), "other elements"));
  CHECK(says(refusal({0}, {{0, 0, {0}, {1}}}), "other elements"));
  CHECK(says(refusal({4, 4}, {{0, 0, {0, 0}, {4, 2}}, {0, 0, {0, 0}, {4, 2}}}), "overlap"));
  CHECK(says(refusal({4, 4}, {{0, 0, {0, 0}, {4, 3}}, {0, 0, {0, 2}, {4, 2}}}), "no grid"));
  CHECK(says(refusal({4, 4}, {{0, 0, {0, 0}, {4, 1}}, {0, 0, {0, 2}, {4, 2}}}), "no grid"));
  CHECK(says(refusal({4, 4}, {{0, 0, {0, 0}, {2, 2}}, {0, 0, {0, 2}, {2, 2}}, {0, 0, {2, 0}, {2, 2}}}), "missing"));
  CHECK(says(refusal({4, 4}, {{0, 0, {0, 0}, {2, 4}}, {0, 0, {2, 0}, {2, 2}}, {0, 0, {2, 2}, {2, 2}}}), "no grid"));
  CHECK(says(refusal({}, {{0, 0, {}, {}}, {0, 0, {}, {}}}), "overlap"));
}

TEST_CASE("boxes outside of their tensor are refused") {
  CHECK(says(refusal({4}, {{0, 0, {0, 0}, {4, 1}}}), "other dimensions"));
  CHECK(says(refusal({4}, {{0, 0, {0}, {4}}, {0, 0, {4}, {1}}}), "outside"));
  CHECK(says(refusal({4}, {{0, 0, {1}, {UINT64_MAX}}}), "outside"));
  CHECK(says(refusal({4}, {{0, 0, {0}, {UINT64_MAX}}}), "in boxes"));
  CHECK(says(refusal({32}, {{0, 0, {0}, {32}}}, DType::q4_0), "cannot lie in boxes"));
  CHECK(box_bytes(DType::f32, {0, 0, {0, 0}, {2, 3}}) == 24U);
  CHECK_FALSE(box_bytes(DType::f32, {0, 0, {0}, {1ULL << 62U}}).has_value());
  CHECK_FALSE(box_bytes(DType::q4_0, {0, 0, {0}, {32}}).has_value());
}

// Random grids, whose boxes are shuffled, and then spoiled.
class RandomBoxes {
 public:
  explicit RandomBoxes(std::uint64_t seed) : random_(seed) {}

  void step() {
    Shape shape;
    std::vector<std::vector<std::uint64_t>> sides;
    for (std::size_t n = 1 + below(4); n > 0; --n) {
      shape.push_back(1 + below(9));
      sides.push_back({0});
      while (sides.back().back() < shape.back()) sides.back().push_back(sides.back().back() + 1 + below(5));
    }
    std::vector<TensorBox> boxes(1);
    for (const auto& side : sides) {
      std::vector<TensorBox> longer;
      for (const TensorBox& box : boxes)
        for (std::size_t i = 0; i + 1 < side.size(); ++i) {
          longer.push_back(box);
          longer.back().begin.push_back(side[i]);
          longer.back().size.push_back(side[i + 1] - side[i]);
        }
      boxes = std::move(longer);
    }
    for (std::size_t i = 0; i < boxes.size(); ++i) boxes[i].offset = 1000000 * i;
    std::ranges::shuffle(boxes, random_);
    FoundTensor tensor = tensor_of(shape);
    must(place_boxes(tensor, boxes));
    Layout layout;
    layout.tensors = {tensor};
    CHECK(check_layout(layout).ok());
    if (boxes.size() == 1) return;
    spoil(boxes);
    FoundTensor spoiled = tensor_of(shape);
    CHECK_FALSE(place_boxes(spoiled, boxes).ok());
  }

  void finish() const { CHECK(spoiled_ > 0); }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }

  void spoil(std::vector<TensorBox>& boxes) {
    ++spoiled_;
    const std::size_t one = below(boxes.size());
    if (below(2) == 0)
      boxes.erase(boxes.begin() + static_cast<std::ptrdiff_t>(one));
    else
      boxes.push_back(boxes[one]);
  }

  std::mt19937_64 random_;
  std::uint64_t spoiled_ = 0;
};

TEST_CASE("random boxes make a layout, and no longer if one of them is missing or there twice") {
  run_rounds<RandomBoxes>(200);
}

TEST_CASE("a million boxes are placed by sorting") {
  std::vector<TensorBox> boxes;
  for (std::uint64_t i = 0; i < 1024; ++i)
    for (std::uint64_t j = 1024; j-- > 0;) boxes.push_back({0, (i * 1024 + j) * 16, {2 * i, 2 * j}, {2, 2}});
  FoundTensor tensor = tensor_of({2048, 2048});
  must(place_boxes(tensor, std::move(boxes)));
  CHECK(places(tensor) == Places{{0, 16777216}});
  CHECK(tensor.grid.size() == 2050);
}

}  // namespace
}  // namespace weft::testing
