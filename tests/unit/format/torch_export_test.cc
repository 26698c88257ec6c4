#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>

#include "torch_files.h"

using namespace weft;
using namespace weft::testing;

namespace {

const std::string kFirst(96, 'a'), kSecond = "12345678";

std::string numbers(const std::vector<int>& values) {
  std::string out;
  for (const int value : values) out += fmt::format("{}{{\"as_int\": {}}}", out.empty() ? "" : ", ", value);
  return fmt::format("[{}]", out);
}

// An entry of a config. `more` replaces what follows the sizes and strides.
std::string weight(std::string_view path, const std::vector<int>& sizes, const std::vector<int>& strides, int dtype = 7,
                   std::string_view more = R"("storage_offset": {"as_int": 0}, "layout": 7}, "use_pickle": false)") {
  return fmt::format(R"({{"path_name": "{}", "is_param": true, "tensor_meta": {{"dtype": {}, "device": )"
                     R"({{"type": "cpu", "index": null}}, "sizes": {}, "strides": {}, {}}})",
                     path, dtype, numbers(sizes), numbers(strides), more);
}

std::string exported(std::string_view weights, std::string_view constants = "", std::string_view order = "little") {
  std::vector<ZipPart> parts = {{"m/data/weights/weight_0", kFirst},
                                {"m/data/weights/weight_1", kSecond},
                                {"m/data/weights/weight_2", kSecond, 8},
                                {"m/data/weights/model_weights_config.json",
                                 fmt::format(R"({{"config": {{{}}}, "more": [1, {{"x": -1}}]}})", weights)},
                                {"m/byteorder", std::string(order)}};
  if (!constants.empty()) {
    parts.push_back({"m/data/constants/tensor_0", kSecond});
    parts.push_back(
        {"m/data/constants/model_constants_config.json", fmt::format(R"({{"config": {{{}}}}})", constants)});
  }
  return zip_file(parts);
}

std::string why_hidden(const std::string& entry) {
  const Layout layout = good("m.pt2", exported("\"w\": " + entry));
  CHECK(layout.format == "torch export");
  CHECK(layout.tensors.empty());
  REQUIRE(layout.hidden.size() == 1);
  CHECK(layout.hidden[0].name == "w");
  return layout.hidden[0].why;
}

}  // namespace

TEST_CASE("torch export: weights and constants are tensors") {
  const std::string file =
      exported(fmt::format(R"("l.weight": {}, "b": {}, "none": {})", weight("weight_0", {6, 4}, {1, 6}),
                           weight("weight_1", {4}, {1}, 13), weight("weight_1", {0, 3}, {3, 1})),
               "\"c\": " + weight("tensor_0", {}, {}, 8));
  const Layout layout = good("m.pt2", file);
  CHECK(layout.format == "torch export");
  REQUIRE(layout.tensors.size() == 4);
  const auto named = [&](std::string_view wanted) {
    return *std::ranges::find(layout.tensors, wanted, &FoundTensor::name);
  };
  CHECK(named("l.weight").strides == Strides{1, 6});
  CHECK(named("l.weight").shape == Shape{6, 4});
  CHECK(range_of(named("l.weight")).offset == file.find(kFirst));
  CHECK(range_of(named("l.weight")).length == 96);
  CHECK(named("b").dtype == DType::bf16);
  CHECK(named("none").parts.empty());
  CHECK(named("constants.c").dtype == DType::f64);
  CHECK(layout.hidden.empty());
  CHECK(layout.cuts.size() == 7);
}

TEST_CASE("torch export: a weight that weft cannot show is hidden with a reason") {
  CHECK(why_hidden(weight("weight_9", {2}, {1})) == "its bytes are not in the file");
  CHECK(why_hidden(weight("../weights/weight_1", {2}, {1})) == "its bytes are not in the file");
  CHECK(why_hidden(weight("weight_2", {2}, {1})) == "compressed");
  CHECK(why_hidden(weight("weight_1", {3}, {1})) == "it ends after its storage of 8 bytes");
  CHECK(why_hidden(weight("weight_1", {2}, {1}, 9)) == "a type that weft lacks, of number 9");
  CHECK(why_hidden(weight("weight_1", {2, 1}, {1})) == "a description that weft does not know");
  CHECK(why_hidden(weight("weight_1", {-2}, {1})) == "a description that weft does not know");
  CHECK(why_hidden(weight("weight_1", {2}, {1}, 7, R"("layout": 1}, "use_pickle": false)")) ==
        "a description that weft does not know");
  CHECK(why_hidden(weight("weight_1", {2}, {1}, 7, R"("storage_offset": {"as_expr": "s0"}, "layout": 7})")) ==
        "a description that weft does not know");
  CHECK(why_hidden(weight("weight_1", {2}, {1}, 7, R"("layout": 7}, "use_pickle": true)")) == "a pickled value");
  CHECK(why_hidden(weight("weight_1", std::vector<int>(40, 1), std::vector<int>(40, 1))) ==
        "expected at most 32 dimensions, got more");
  CHECK(why_hidden("{}") == "its bytes are not in the file");
}

TEST_CASE("torch export: archives that weft cannot read are kept") {
  CHECK(says(kept("m.pt2", exported("\"w\": {")), "model_weights_config.json: "));
  CHECK(says(kept("m.pt2", exported("", "", "big")), "another byte order"));
  CHECK(good("m.pt2", exported("")).tensors.empty());
}
