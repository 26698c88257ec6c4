#include "weft/model/base_pairs.h"

#include <doctest/doctest.h>

#include "unit/model/models.h"

namespace weft {
namespace {

constexpr std::uint64_t kLong = 1U << 20U;

struct Spec {
  std::string name;
  std::uint64_t seed = 0;
  DType dtype = DType::bf16;
  Shape shape = {512, 1024};
};

// Consecutive tensors. The content id of each follows from its length and seed.
File file_of(const std::string& path, const std::vector<Spec>& specs) {
  File file{path, 0, "safetensors", {}, {}, {}};
  for (const Spec& spec : specs) {
    const std::uint64_t length = tensor_bytes(spec.dtype, spec.shape).value();
    file.tensors.push_back({spec.name, spec.dtype, spec.shape, static_cast<std::uint32_t>(file.extents.size()), ""});
    file.extents.push_back({file.size, testing::content(length, spec.seed)});
    file.size += length;
  }
  return file;
}

ContentId id(std::uint64_t seed, std::uint64_t length = kLong) {
  return testing::content(length, seed);
}

}  // namespace

TEST_CASE("Tensors of one name, type and shape with other content are pairs, with the width of their type") {
  const Manifest parent{{file_of("m", {{"a", 1}, {"b", 2}, {"c", 3, DType::f32, {512, 512}}})}};
  const Manifest child{{file_of("m", {{"a", 11}, {"b", 2}, {"c", 13, DType::f32, {512, 512}}})}};
  CHECK(pair_bases(child, parent) == BasePairs{{id(11), {id(1), 2}}, {id(13), {id(3), 4}}});
  CHECK(pair_bases(child, child).empty());
  CHECK(pair_bases({}, parent).empty());
  CHECK(pair_bases(child, {}).empty());
}

TEST_CASE("A tensor of another type or shape has no base") {
  const Manifest parent{{file_of("m", {{"a", 1}, {"b", 2}})}};
  const Manifest other{{file_of("n", {{"a", 11, DType::f16}, {"b", 12, DType::bf16, {1024, 512}}, {"x", 13}})}};
  CHECK(pair_bases(other, parent).empty());
}

TEST_CASE("A tensor that moved to another file has its base there; one path comes before") {
  const Manifest parent{{file_of("1", {{"a", 1}, {"b", 2}}), file_of("2", {{"b", 3}})}};
  CHECK(pair_bases({{file_of("2", {{"a", 11}, {"b", 12}})}}, parent) ==
        BasePairs{{id(11), {id(1), 2}}, {id(12), {id(3), 2}}});
}

TEST_CASE("Files without tensors are paired by path, size and place") {
  const auto blobs = [](std::uint64_t seed) {
    File file{"f", 2 * kLong, "", {}, {}, {}};
    file.extents = {{0, id(seed)}, {kLong, id(seed + 1)}};
    return file;
  };
  CHECK(pair_bases({{blobs(11)}}, {{blobs(1)}}) == BasePairs{{id(11), {id(1), 1}}, {id(12), {id(2), 1}}});
  File other = blobs(11);
  other.path = "g";
  CHECK(pair_bases({{other}}, {{blobs(1)}}).empty());
  File longer = blobs(11);
  longer.size += 10;
  longer.extents.push_back({2 * kLong, id(20, 10)});
  CHECK(pair_bases({{longer}}, {{blobs(1)}}).empty());
  File cut = blobs(1);
  cut.extents = {{0, id(1, kLong / 2)}, {kLong / 2, id(2, kLong / 2)}, {kLong, id(3)}};
  CHECK(pair_bases({{blobs(11)}}, {{cut}}) == BasePairs{{id(12), {id(3), 1}}});
}

TEST_CASE("Small blobs, tensors without bytes, and blobs that the parent has elsewhere get no base") {
  const Manifest parent{{file_of("m", {{"a", 1, DType::u8, {4095}}, {"b", 2}, {"c", 3}})}};
  CHECK(pair_bases({{file_of("m", {{"a", 11, DType::u8, {4095}}, {"b", 3}})}}, parent).empty());
  File empty = file_of("m", {{"b", 12}});
  empty.tensors.front().extent = kNoExtent;
  empty.tensors.front().shape = {0};
  CHECK(pair_bases({{empty}}, parent).empty());
}

TEST_CASE("Complex numbers are pairs of real ones, blocks are bytes") {
  const auto width = [](DType type, const Shape& shape) {
    const auto pairs =
        pair_bases({{file_of("m", {{"a", 11, type, shape}})}}, {{file_of("m", {{"a", 1, type, shape}})}});
    return pairs.empty() ? 0 : int{pairs.begin()->second.width};
  };
  CHECK(width(DType::f8_e4m3, {8192}) == 1);
  CHECK(width(DType::i64, {8192}) == 8);
  CHECK(width(DType::c64, {8192}) == 4);
  CHECK(width(DType::c128, {8192}) == 8);
  CHECK(width(DType::q8_0, {8192}) == 1);
  CHECK(width(DType::f6_e2m3, {8192}) == 1);
}

}  // namespace weft
