#include "tflite_files.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/limits.h"

using namespace weft;
using namespace weft::testing;

namespace {

const std::string kData = "0123456789abcdefABCDEFGH";

std::string why_hidden(const TfliteTensor& tensor) {
  const Layout layout = good("m.tflite", tflite_file({{tensor}}, {"", kData}));
  CHECK(layout.format == "tflite");
  CHECK(layout.tensors.empty());
  REQUIRE(layout.hidden.size() == 1);
  CHECK(layout.hidden[0].name == tensor.name);
  CHECK(layout.hidden[0].bytes == kData.size());
  return layout.hidden[0].why;
}

}  // namespace

TEST_CASE("tflite: each tensor with a buffer is a tensor") {
  const std::string file =
      tflite_file({{{"conv/w", 0, {2, 3}, 1}, {"input", 0, {1, 4}, 0}, {"tied", 2, {6}, 1}, {"", 9, {}, 2}},
                   {{"conv/w", 7, {12}, 1}}},
                  {"", kData, "x"});
  for (const char* name : {"m.tflite", "sha256-0123"}) {
    MemorySource source(file);
    const auto parsed = parse_file("place", name, source);
    REQUIRE(parsed.ok());
    const Layout& layout = *parsed;
    CHECK(layout.format == "tflite");
    REQUIRE(layout.tensors.size() == 4);
    for (const FoundTensor& tensor : layout.tensors)
      if (tensor.name != "tensor_3") CHECK(range_of(tensor).offset == file.find(kData));
    const auto named = [&](std::string_view wanted) {
      return *std::ranges::find(layout.tensors, wanted, &FoundTensor::name);
    };
    CHECK(named("conv/w").shape == Shape{2, 3});
    CHECK(named("conv/w").dtype == DType::f32);
    CHECK(named("tied").dtype == DType::i32);
    CHECK(named("1.conv/w").dtype == DType::i16);
    CHECK(named("tensor_3").shape.empty());
    CHECK(layout.hidden.empty());
    CHECK(layout.cuts.size() == 2);
  }
}

TEST_CASE("tflite: the bytes of a large file lie after the FlatBuffer") {
  FlatBuilder flat;
  const std::size_t model = flat.table({0, 0, 4, 0, 4});
  flat.point(0, model);
  const std::size_t graphs = flat.pointers(flat.field(model, 2), 1), graph = flat.table({4});
  flat.point(graphs, graph);
  const std::size_t tensors = flat.pointers(flat.field(graph, 0), 1);
  flat.point(tensors, tflite_tensor(flat, {"w", 0, {6}, 0}));
  const std::size_t buffers = flat.pointers(flat.field(model, 4), 1), buffer = flat.table({0, 8, 8});
  flat.point(buffers, buffer);
  const std::size_t at = flat.bytes.size();
  flat.put(flat.field(buffer, 1), at, 8);
  flat.put(flat.field(buffer, 2), kData.size(), 8);
  const Layout layout = good("m.tflite", flat.bytes + kData);
  REQUIRE(layout.tensors.size() == 1);
  CHECK(range_of(layout.tensors[0]).offset == at);
  CHECK(says(kept("m.tflite", flat.bytes + kData.substr(1)), "bytes of a buffer at"));
  flat.put(flat.field(buffer, 1), UINT64_MAX - 3, 8);
  CHECK(says(kept("m.tflite", flat.bytes + kData), "bytes of a buffer at"));
}

TEST_CASE("tflite: tensors that weft cannot show are hidden with a reason") {
  CHECK(why_hidden({"packed", 17, {48}, 1}) == "a type that weft lacks, INT4");
  CHECK(why_hidden({"text", 5, {2}, 1}) == "a type that weft lacks, STRING");
  CHECK(why_hidden({"new", 99, {2}, 1}) == "a type that weft lacks, of number 99");
  CHECK(why_hidden({"sparse", 0, {2, 3}, 1, true}) == "its elements are sparse");
  CHECK(why_hidden({"other", 0, {2, 4}, 1}) == "expected other bytes for its shape [2, 4], got 24");
  CHECK(why_hidden({"dynamic", 0, {0xffffffffU, 3}, 1}) == "a dimension without a size");
  CHECK(why_hidden({"large", 0, {0x7fffffff, 0x7fffffff, 0x7fffffff}, 1}).starts_with("expected other bytes"));
  CHECK(why_hidden({"deep", 0, std::vector<std::uint32_t>(33, 1), 1}) == "expected at most 32 dimensions, got more");
}

TEST_CASE("tflite: malformed files are kept") {
  TflitePlaces places;
  const std::string file = tflite_file({{{"w", 0, {2, 3}, 1}}}, {"", kData}, &places);
  const auto damaged = [&](std::size_t at, std::uint64_t value, unsigned width) {
    std::string bytes = file;
    bytes.replace(at, width, little_endian(value, width));
    return bytes;
  };
  CHECK(says(kept("m.tflite", damaged(places.buffers - 4, 0xffffffff, 4)), "of a FlatBuffer, got the end"));
  CHECK(says(kept("m.tflite", damaged(places.tensors - 4, 0xffffffff, 4)), "of a FlatBuffer, got the end"));
  CHECK(says(kept("m.tflite", damaged(places.buffers, 0xffffff00, 4)), "of a FlatBuffer, got the end"));
  CHECK(says(kept("m.tflite", damaged(file.find(kData) - 4, kData.size() + 1, 4)), "of a FlatBuffer, got the end"));
  CHECK(says(kept("m.tflite", damaged(places.model, 0x7fffffff, 4)), "before the file"));
  CHECK(says(kept("m.tflite", damaged(places.model, 0x80000000, 4)), "of a FlatBuffer, got the end"));
  CHECK(says(kept("m.tflite", damaged(0, 0xffffffff, 4)), "of a FlatBuffer, got the end"));
  CHECK(says(kept("m.tflite", damaged(4, 0, 4)), "expected the identifier TFL3"));
  CHECK(says(kept("m.tflite", ""), "got the end of the file at 0"));
  CHECK(good("notes.txt", "my TFL3").format.empty());
}

TEST_CASE("tflite: a file that names one table many times is kept") {
  const auto file_of = [](std::uint64_t times) {
    FlatBuilder flat;
    const std::size_t model = flat.table({0, 0, 0, 0, 4});
    flat.point(0, model);
    const std::size_t pointers = flat.pointers(flat.field(model, 4), times), buffer = flat.table({});
    for (std::uint64_t i = 0; i < times; ++i) flat.point(pointers + 4 * i, buffer);
    return flat.bytes;
  };
  CHECK(good("m.tflite", file_of(limits::kFlatTablesMax - 1)).format == "tflite");
  CHECK(says(kept("m.tflite", file_of(limits::kFlatTablesMax)), "expected at most 131072 tables in a FlatBuffer"));
}
