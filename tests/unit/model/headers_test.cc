#include <doctest/doctest.h>

#include <string>

#include "unit/model/models.h"

namespace weft {
namespace {

using testing::file_of;
using testing::tree_of;

// Checks the form of a version 1.0 header, and returns its dict.
std::string dict_of(const std::string& header) {
  REQUIRE(header.size() % 64 == 0);
  REQUIRE(header.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  REQUIRE(static_cast<unsigned char>(header[8]) + 256U * static_cast<unsigned char>(header[9]) == header.size() - 10);
  REQUIRE(header.back() == '\n');
  auto end = header.find_last_not_of(' ', header.size() - 2);
  return header.substr(10, end - 9);
}

std::string dict(DType dtype, const Shape& shape, std::string_view descr = "") {
  return dict_of(npy_header(dtype, shape, descr));
}

TEST_CASE("npy headers are as numpy writes them") {
  std::string golden("\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", 69);
  golden.append(127 - golden.size(), ' ');
  CHECK(npy_header(DType::f32, Shape{3, 4}, "") == golden + "\n");

  CHECK(dict(DType::i64, {}) == "{'descr': '<i8', 'fortran_order': False, 'shape': (), }");
  CHECK(dict(DType::boolean, {7}) == "{'descr': '|b1', 'fortran_order': False, 'shape': (7,), }");
  CHECK(dict(DType::f16, {0, 5}) == "{'descr': '<f2', 'fortran_order': False, 'shape': (0, 5), }");
}

TEST_CASE("npy headers of types that numpy lacks") {
  CHECK(dict(DType::bf16, {2, 3}) == "{'descr': '|V2', 'fortran_order': False, 'shape': (2, 3), }");
  CHECK(dict(DType::f8_e4m3, {2, 3}) == "{'descr': '|V1', 'fortran_order': False, 'shape': (2, 3), }");
  CHECK(dict(DType::q4_0, {5, 64}) == "{'descr': '|V18', 'fortran_order': False, 'shape': (5, 2), }");
  CHECK(dict(DType::f6_e2m3, {8}) == "{'descr': '|V3', 'fortran_order': False, 'shape': (2,), }");
  CHECK(dict(DType::q4_0, {2, 16}) == "{'descr': '|V1', 'fortran_order': False, 'shape': (18,), }");
  CHECK(dict(DType::f4, {4, 3}) == "{'descr': '|V1', 'fortran_order': False, 'shape': (6,), }");
}

TEST_CASE("an npy description is kept as it was, but for padding") {
  std::string text = "{'descr': [('a', '>f4'), ('b', '<i2', (2,))], 'fortran_order': True, 'shape': (3, 4), }";
  CHECK(dict(DType::npy_other, {3, 4}, text + "        \n") == text);
}

TEST_CASE("long npy headers are version 2.0, names beyond ASCII version 3.0") {
  std::string text =
      "{'descr': [" + std::string(70'000, ' ') + "('a', '<f4')], 'fortran_order': False, 'shape': (1,), }";
  std::string header = npy_header(DType::npy_other, Shape{1}, text);
  CHECK(header.size() % 64 == 0);
  CHECK(header.substr(6, 2) == std::string("\x02\x00", 2));
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) length |= std::size_t{static_cast<unsigned char>(header[8 + i])} << (8 * i);
  CHECK(length == header.size() - 12);
  CHECK(header.substr(12, text.size()) == text);

  CHECK(npy_header(DType::npy_other, Shape{1}, "{'descr': [('ü', '<f4')]}")[6] == 3);
  CHECK(npy_header(DType::npy_other, Shape{1}, "{'descr': [('\xfc', '<f4')]}")[6] == 1);  // Latin-1
}

TEST_CASE("what safetensors can hold") {
  for (DType dtype : {DType::boolean, DType::u64, DType::bf16, DType::c64, DType::f8_e8m0, DType::f4, DType::f6_e3m2})
    CHECK(safetensors_can_hold(dtype));
  for (DType dtype : {DType::c128, DType::q4_0, DType::mxfp4, DType::npy_other, DType{0}, DType{63}})
    CHECK_FALSE(safetensors_can_hold(dtype));
  CHECK(safetensors_can_hold(Tensor{"t", DType::f32, {}, 0, ""}));
  CHECK_FALSE(safetensors_can_hold(Tensor{"t", DType::f32, {}, 0, "{'descr': '>f4'}"}));
  CHECK_FALSE(safetensors_can_hold(Tensor{"t", DType::f32, {2}, kNoExtent, "", {{0, 0, 0, 4}, {0, 0, 8, 4}}}));
}

TEST_CASE("a safetensors header") {
  Manifest manifest{
      {file_of("m.safetensors", {{"a.x", DType::f32, {2, 3}}, {"a.\"y\"", DType::i64, {}}, {"a.z", DType::u8, {0}}})}};
  std::vector<TensorRef> refs{{0, 1}, {0, 0}, {0, 2}};
  std::string header = safetensors_header(manifest, refs);
  std::string json = R"({"a.\"y\"":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                     R"("a.x":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},)"
                     R"("a.z":{"dtype":"U8","shape":[0],"data_offsets":[32,32]}})";
  json.append((8 - json.size() % 8) % 8, ' ');
  REQUIRE(header.size() == 8 + json.size());
  CHECK(header.substr(8) == json);
  CHECK(static_cast<unsigned char>(header[0]) == json.size());
  CHECK(header.substr(1, 7) == std::string(7, '\0'));
}

TEST_CASE("a container holds what safetensors can, larger elements first") {
  auto tree = tree_of({{file_of("m.gguf",
                                {{"a.byte", DType::u8, {3}},
                                 {"a.half", DType::bf16, {3}},
                                 {"a.quantised", DType::q4_0, {32}},
                                 {"a.b.single", DType::f32, {3}},
                                 {"a.packed", DType::f4, {2}},
                                 {"other.x"},
                                 {"a.single", DType::i32, {1}}},
                                "gguf")}});
  std::string names;
  for (TensorRef ref : container_tensors(*tree, tree->node(testing::at(*tree, "layers/a.safetensors")).layer))
    names += tree->manifest().files[ref.file].tensors[ref.tensor].name + " ";
  CHECK(names == "a.b.single a.single a.half a.byte a.packed ");
}

}  // namespace
}  // namespace weft
