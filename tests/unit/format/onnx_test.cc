// Models of ONNX in one file. onnx_external_test.cc has external data.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <random>

#include "allocation.h"
#include "base/limits.h"
#include "builders.h"
#include "protobufs.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr unsigned kFloat = 1, kInt32 = 6, kInt64 = 7, kHalf = 10, kDouble = 11, kComplex64 = 14, kComplex128 = 15;

FoundTensor only(const std::string& tensor) {
  const Layout layout = good("m.onnx", onnx_with(tensor));
  CHECK(layout.format == "onnx");
  CHECK(layout.hidden.empty());
  CHECK(layout.cuts.empty());
  REQUIRE(layout.tensors.size() == 1);
  return layout.tensors[0];
}

HiddenTensor only_hidden(const std::string& tensor, std::size_t cuts = 0) {
  const Layout layout = good("m.onnx", onnx_with(tensor));
  CHECK(layout.format == "onnx");
  CHECK(layout.tensors.empty());
  CHECK(layout.cuts.size() == cuts);
  REQUIRE(layout.hidden.size() == 1);
  return layout.hidden[0];
}

std::string why_hidden(const std::string& tensor) {
  return only_hidden(tensor).why;
}

std::vector<std::string> names_in(const std::string& model) {
  std::vector<std::string> names;
  const Layout layout = good("m.onnx", model);
  CHECK(layout.hidden.empty());
  for (const FoundTensor& tensor : layout.tensors) names.push_back(tensor.name);
  return names;
}

// A scalar of one byte.
std::string scalar(std::string_view name) {
  return onnx_raw(name, 2, {}, "x");
}
std::string constant(std::string_view node) {
  return onnx_node(node, onnx_attribute("value", 5, scalar("")));
}

// A model with everything that the reader looks at.
std::string rich_model() {
  const std::string body = pb_bytes(5, scalar("bias")) + constant("inner");
  const std::string sparse = pb_bytes(1, onnx_raw("s", kFloat, {2}, "12345678")) +
                             pb_bytes(2, onnx_raw("", kInt64, {2}, std::string(16, '\0'))) + pb_varint(3, 9);
  const std::string graph = constant("c") + onnx_node("if", onnx_attribute("then_branch", 6, body)) +
                            pb_bytes(5, onnx_raw("w", kFloat, {2, 1}, "01234567")) + pb_bytes(15, sparse) +
                            pb_bytes(5, onnx_tensor("packed", kDouble, {1}) + pb_bytes(10, "01234567")) +
                            pb_bytes(5, onnx_tensor("varints", kInt64, {2}) + pb_bytes(7, "\1\2"));
  const std::string function = pb_bytes(1, "f") + pb_bytes(7, constant("k").substr(2));
  return onnx_model(graph, pb_bytes(14, pb_bytes(1, "author") + pb_bytes(2, "me")) + pb_bytes(25, function) +
                               pb_bytes(20, pb_bytes(1, pb_bytes(5, scalar("seed")))));
}

}  // namespace

TEST_CASE("onnx: an initializer is a tensor, by its type") {
  struct Type {
    unsigned number;
    const char* name;
    std::size_t bytes;  // of four elements
  };
  for (const Type type : std::initializer_list<Type>{
           {1, "F32", 16},     {2, "U8", 4},           {3, "I8", 4},       {4, "U16", 8},          {5, "I16", 8},
           {6, "I32", 16},     {7, "I64", 32},         {9, "BOOL", 4},     {10, "F16", 8},         {11, "F64", 32},
           {12, "U32", 16},    {13, "U64", 32},        {14, "C64", 32},    {15, "C128", 64},       {16, "BF16", 8},
           {17, "F8_E4M3", 4}, {18, "F8_E4M3FNUZ", 4}, {19, "F8_E5M2", 4}, {20, "F8_E5M2FNUZ", 4}, {23, "F4", 2},
           {24, "F8_E8M0", 4}, {27, "F6_E2M3", 3},     {28, "F6_E3M2", 3}}) {
    CAPTURE(type.name);
    const std::string model = onnx_with(onnx_raw("layer.w", type.number, {1, 4}, std::string(type.bytes, 'x')));
    const Layout layout = good("m.onnx", model);
    CHECK(layout.format == "onnx");
    REQUIRE(layout.tensors.size() == 1);
    CHECK(layout.tensors[0].name == "layer.w");
    CHECK(layout.tensors[0].dtype == dtype_by_name(type.name)->type);
    CHECK(layout.tensors[0].shape == Shape{1, 4});
    CHECK(range_of(layout.tensors[0]) == Range{model.find("xx"), type.bytes});
  }
  for (const unsigned number : {0U, 8U, 21U, 22U, 25U, 26U, 29U, 1'000'000U}) {
    const HiddenTensor hidden = only_hidden(onnx_raw("w", number, {1, 4}, "1234"));
    CHECK(hidden.why.starts_with("a type that weft lacks, "));
    CHECK(hidden.bytes == 4);
    CHECK_FALSE(hidden.dtype);
  }
}

TEST_CASE("onnx: the bytes of a tensor that weft cannot show are a cut, if they are worth it") {
  const std::string bytes(limits::kCutMin, 'x');
  CHECK(only_hidden(onnx_raw("w", 22, {8192}, bytes), 1).why == "a type that weft lacks, INT4");
  CHECK(only_hidden(onnx_raw("w", kFloat, {1025}, bytes), 1).why ==
        "expected 4100 bytes for its shape [1025], got 4096");
  CHECK(only_hidden(onnx_raw("w", kFloat, {1025}, bytes.substr(1)), 0).bytes == 4095);
  CHECK(only_hidden(onnx_tensor("w", kFloat, {1025}) + pb_bytes(4, bytes), 1).bytes == 4096);
}

TEST_CASE("onnx: numbers of variable length in one field are a cut, if they are worth it") {
  const std::string bytes(4096, 'x');
  for (const auto& row : std::initializer_list<std::pair<unsigned, std::uint64_t>>{
           {kHalf, 5}, {kInt32, 5}, {kInt64, 7}, {12, 11}, {22, 5}}) {
    const auto& [type, field] = row;
    CAPTURE(row.first);
    const std::string model = onnx_with(onnx_tensor("w", type, {4096}) + pb_bytes(field, bytes));
    const Layout layout = good("m.onnx", model);
    CHECK(layout.hidden.size() == 1);
    REQUIRE(layout.cuts.size() == 1);
    CHECK(layout.cuts[0].file == 0);
    CHECK(layout.cuts[0].offset == model.find("xx"));
    CHECK(layout.cuts[0].length == 4096);
  }
  const std::string half = onnx_tensor("w", kHalf, {4096});
  only_hidden(half + pb_bytes(5, bytes.substr(1)), 0);
  only_hidden(half + pb_bytes(5, bytes) + pb_bytes(5, bytes), 0);
  only_hidden(half + pb_bytes(5, bytes) + pb_bytes(7, bytes), 0);
  only_hidden(half + pb_bytes(5, bytes) + onnx_external("m.data", "", ""), 0);
  CHECK(only_hidden(half + pb_bytes(5, bytes) + pb_bytes(9, "raw"), 0).bytes == 3);
}

TEST_CASE("onnx: packed floats are the memory of a tensor, and other numbers are not") {
  CHECK(range_of(only(onnx_tensor("w", kFloat, {2}) + pb_bytes(4, "01234567"))).length == 8);
  CHECK(range_of(only(onnx_tensor("w", kComplex64, {1}) + pb_bytes(4, "01234567"))).length == 8);
  CHECK(range_of(only(onnx_tensor("w", kDouble, {1}) + pb_bytes(10, "01234567"))).length == 8);
  CHECK(range_of(only(onnx_tensor("w", kComplex128, {1}) + pb_bytes(10, "0123456789abcdef"))).length == 16);
  const std::string variable = "its elements are numbers of variable length";
  const HiddenTensor hidden = only_hidden(onnx_tensor("w", kInt32, {2}) + pb_bytes(5, "\1\2"));
  CHECK(hidden.why == variable);
  CHECK(hidden.bytes == 2);
  CHECK(hidden.dtype == DType::i32);
  CHECK(hidden.shape == Shape{2});
  CHECK(why_hidden(onnx_tensor("w", kHalf, {2}) + pb_bytes(5, "\1\2")) == variable);
  CHECK(why_hidden(onnx_tensor("w", kInt64, {2}) + pb_varint(7, 1) + pb_varint(7, 2)) == variable);
  CHECK(why_hidden(onnx_tensor("w", 12, {2}) + pb_bytes(11, "\1\2")) == variable);
  CHECK(why_hidden(onnx_tensor("w", kFloat, {2}) + pb_bytes(4, "0123") + pb_bytes(4, "4567")) ==
        "expected its elements in one field, got 2 fields");
  CHECK(why_hidden(onnx_tensor("w", kFloat, {2}) + pb_bytes(10, "01234567")) ==
        "expected its elements in one field, got 0 fields");
}

TEST_CASE("onnx: shapes") {
  CHECK(only(onnx_raw("w", kFloat, {}, "0123")).shape.empty());
  const FoundTensor packed = only(pb_bytes(1, "\2\1") + onnx_raw("w", kFloat, {}, "01234567"));
  CHECK(packed.shape == Shape{2, 1});
  CHECK(only(onnx_tensor("w", kFloat, {0, UINT64_MAX})).parts.empty());
  CHECK(only(onnx_raw("w", kFloat, {3, 0}, "")).shape == Shape{3, 0});
  CHECK(why_hidden(onnx_tensor("w", kFloat, {2})) == "expected 8 bytes for its shape [2], got 0");
  CHECK(why_hidden(onnx_raw("w", kFloat, {0}, "0123")) == "expected 0 bytes for its shape [0], got 4");
  CHECK(why_hidden(onnx_raw("w", kFloat, {UINT64_MAX}, "0123")).find("more than 2^64") != std::string::npos);
  CHECK(why_hidden(onnx_raw("w", 2, {1ULL << 63U}, "0123")).find("too large") != std::string::npos);
  CHECK(why_hidden(onnx_raw("w", kFloat, {1ULL << 32U, 1ULL << 32U}, "")).find("more than 2^64") != std::string::npos);
  const std::vector<std::uint64_t> most(limits::kDimensionsMax, 1), more(limits::kDimensionsMax + 1, 1),
      many(100'000, 1);
  CHECK(only(onnx_raw("w", kFloat, most, "0123")).shape.size() == limits::kDimensionsMax);
  CHECK(why_hidden(onnx_raw("w", kFloat, more, "0123")) == "expected at most 32 dimensions, got more");
  CHECK(only_hidden(onnx_raw("w", kFloat, many, "0123")).shape.empty());
  CHECK(why_hidden(onnx_raw("w", kFloat, {1}, "0123") + pb_bytes(3, pb_varint(1, 0))) == "a segment of a tensor");
}

TEST_CASE("onnx: constants of nodes, subgraphs, functions and training are named by the way to them") {
  const Layout layout = good("m.onnx", rich_model());
  std::vector<std::string> names;
  for (const FoundTensor& tensor : layout.tensors) names.push_back(tensor.name);
  CHECK(names == std::vector<std::string>{"c.value", "if.then_branch.bias", "if.then_branch.inner.value", "w",
                                          "s.values", "s.indices", "packed", "f.k.value",
                                          "training_info.initialization.seed"});
  REQUIRE(layout.hidden.size() == 1);
  CHECK(layout.hidden[0].name == "varints");
  CHECK(layout.metadata ==
        std::vector<std::pair<std::string, std::string>>{
            {"ir_version", "8"}, {"producer_name", "pytorch"}, {"producer_version", "2.9"}, {"author", "me"}});
}

TEST_CASE("onnx: names of nodes, and equal names") {
  const std::string value = onnx_attribute("value", 5, scalar("not this name"));
  CHECK(names_in(onnx_model(pb_bytes(1, value + pb_bytes(3, "late")))) == std::vector<std::string>{"late.value"});
  CHECK(names_in(onnx_model(pb_bytes(1, pb_bytes(2, "out") + pb_bytes(2, "other") + value))) ==
        std::vector<std::string>{"out.value"});
  CHECK(names_in(onnx_model(onnx_node("x", "") + pb_bytes(1, value))) == std::vector<std::string>{"2.value"});
  CHECK(names_in(onnx_model(constant("a") + constant("a") + pb_bytes(5, scalar("a.value")))) ==
        std::vector<std::string>{"a.value", "a.value~2", "a.value~3"});
  const std::string list = pb_bytes(5, pb_bytes(10, scalar("")) + pb_bytes(10, scalar("")) + pb_bytes(1, "all") +
                                           pb_bytes(11, pb_bytes(5, scalar("g"))));
  CHECK(names_in(onnx_model(onnx_node("n", list))) == std::vector<std::string>{"n.all", "n.all~2", "n.all.g"});
  const std::string sparse = pb_bytes(1, scalar("ignored")) + pb_bytes(2, onnx_raw("", kInt64, {1}, "01234567"));
  CHECK(names_in(onnx_model(onnx_node("n", onnx_attribute("sparse_value", 22, sparse)))) ==
        std::vector<std::string>{"n.sparse_value.values", "n.sparse_value.indices"});
  CHECK(names_in(onnx_model("", pb_bytes(25, pb_bytes(11, pb_bytes(1, "alpha") + pb_bytes(5, scalar(""))) +
                                                 pb_bytes(1, "f")))) == std::vector<std::string>{"f.alpha"});
}

TEST_CASE("onnx: a name that no tensor may have hides its tensor") {
  const std::string long_name(limits::kTensorNameMax + 1, 'n');
  CHECK(why_hidden(scalar(long_name)).find("expected a name of at most 4096 bytes") != std::string::npos);
  CHECK(why_hidden(scalar("\xff")).find("expected a name in UTF-8") != std::string::npos);
  const Layout layout = good("m.onnx", onnx_model(onnx_node(long_name, onnx_attribute("value", 5, scalar("")))));
  CHECK(layout.tensors.empty());
  CHECK(layout.hidden.size() == 1);
}

TEST_CASE("onnx: the names of all tensors together are bounded") {
  std::string attributes;
  const std::string one = pb_bytes(5, pb_bytes(5, scalar("")));
  for (std::uint64_t i = 0; i <= limits::kTensorNamesMax / 4000; ++i) attributes += one;
  const std::string model = onnx_model(onnx_node(std::string(4000, 'n'), attributes));
  CHECK(says(kept("m.onnx", model), "expected names of tensors of at most 67108864 bytes together, got more"));
}

TEST_CASE("onnx: the list of hidden tensors is bounded") {
  std::string graph;
  for (std::size_t i = 0; i < limits::kHiddenTensorsMax + 5; ++i) graph += pb_bytes(5, onnx_tensor("t", 8, {1}));
  const Layout layout = good("m.onnx", onnx_model(graph));
  CHECK(layout.hidden.size() == limits::kHiddenTensorsMax);
  CHECK(layout.hidden_more == 5);
}

TEST_CASE("onnx: a file that is no model is kept with the reason") {
  CHECK(says(kept("m.onnx", ""), "expected one graph in the model, got 0"));
  CHECK(says(kept("m.onnx", "<html>not found</html>"), "protobuf: expected"));
  CHECK(says(kept("m.onnx", std::string(100, '\0')), "protobuf: expected a field from 1 to"));
  CHECK(says(kept("m.onnx", onnx_model("", pb_bytes(7, ""))), "expected one graph in the model, got 2"));
  CHECK(says(kept("m.onnx", onnx_model("", pb_varint(0, 1))), "protobuf: expected a field from 1 to"));
  CHECK(says(kept("m.onnx", onnx_model("", pb_key(9, 3) + pb_key(9, 4))), "protobuf: expected no group"));
  CHECK(says(kept("m.onnx", onnx_model(pb_bytes(5, pb_key(8, 2) + pb_number(1ULL << 62U)))), "protobuf: expected"));
  CHECK(says(kept("m.onnx", onnx_model(pb_bytes(5, pb_key(8, 2) + std::string(10, '\xff')))), "protobuf: expected"));
}

TEST_CASE("onnx: subgraphs are read to a depth, and no deeper") {
  const auto nested = [](int depth) {
    std::string graph = pb_bytes(5, scalar("w"));
    for (int i = 0; i < depth; ++i) graph = onnx_node("n", onnx_attribute("g", 6, graph));
    return onnx_model(graph);
  };
  CHECK(names_in(nested(30)).size() == 1);
  CHECK(says(kept("m.onnx", nested(40)), "protobuf: expected messages nested at most 100 deep"));
  CHECK(says(kept("m.onnx", nested(3000)), "protobuf: expected messages nested at most 100 deep"));
}

TEST_CASE("onnx: most models are known by their first bytes") {
  CHECK(good("sha256-0123", rich_model()).format == "onnx");
  CHECK(says(kept("model.pb", rich_model().substr(0, 60)), "protobuf: expected"));
  CHECK(good("model.pb", onnx_with(scalar("w")).substr(2)).metadata.empty());
  const std::string other = pb_varint(1, 1) + pb_bytes(2, pb_bytes(1, "of a SavedModel"));
  CHECK(good("saved_model.pb", other).metadata.empty());
  CHECK(good("m.pb", "\x08\x08").metadata.empty());
  CHECK(good("m.onnx", onnx_with(scalar("w")).substr(2)).tensors.size() == 1);
}

TEST_CASE("onnx: a small file cannot make the reader allocate much") {
  const std::uint64_t huge = 1ULL << 62U;
  for (const std::string& tensor :
       {pb_key(8, 2) + pb_number(huge), pb_key(9, 2) + pb_number(huge), pb_key(1, 2) + pb_number(huge),
        onnx_raw("w", kFloat, {huge, huge}, ""), pb_bytes(13, pb_key(2, 2) + pb_number(huge))}) {
    const std::string model = onnx_with(tensor);
    MemorySource source(model);
    reset_allocations();
    const auto layout = parse_file("m.onnx", "m.onnx", source);
    const Allocations used = allocations();
    CHECK(layout.ok());
    CHECK(used.largest <= 4096);
    CHECK(used.total <= 16'384);
  }
}

TEST_CASE("onnx: cut and changed models parse into a sound layout") {
  const std::string model = rich_model();
  for (std::size_t length = 0; length < model.size(); ++length) good("m.onnx", model.substr(0, length));
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = model;
    for (std::uint64_t changes = 1 + random() % 3; changes-- > 0;)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    MemorySource source(bytes);
    const auto layout = parse_file("x", "m.onnx", source);
    REQUIRE(layout.ok());
    for (const FoundTensor& tensor : layout->tensors) {
      const Range range = range_of(tensor);
      CHECK(range.offset <= bytes.size());
      CHECK(range.length <= bytes.size() - range.offset);
    }
  }
}
