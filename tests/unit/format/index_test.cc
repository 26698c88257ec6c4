#include <doctest/doctest.h>

#include "base/limits.h"
#include "builders.h"

using namespace weft;
using namespace weft::testing;

namespace {
using WeightMap = std::map<std::string, std::string>;

constexpr std::string_view kWhere = "dir/model.safetensors.index.json";

Error bad_index(std::string_view text) {
  MemorySource source(text);
  auto map = parse_shard_index(kWhere, source);
  INFO("index: ", std::string(text.substr(0, 80)));
  REQUIRE_FALSE(map.ok());
  CHECK(map.error().code == Errc::invalid);
  CHECK(map.error().message.starts_with(std::string(kWhere) + ": "));
  return map.error();
}
Error bad_file(std::string_view name) {
  return bad_index(R"({"weight_map":{"a":")" + std::string(name) + "\"}}");
}
}  // namespace

TEST_CASE("index: tensor names to shards") {
  MemorySource source(R"({"metadata": {"total_size": 12, "x": [{}, null]}, "weight_map": {
    "b": "model-00002-of-00002.safetensors", "a": "model-00001-of-00002.safetensors"}, "more": -1.5})");
  auto map = parse_shard_index(kWhere, source);
  REQUIRE(map.ok());
  CHECK(map->size() == 2);
  CHECK(map->at("a") == "model-00001-of-00002.safetensors");
  CHECK(map->at("b") == "model-00002-of-00002.safetensors");
  MemorySource empty(R"({"weight_map":{}})");
  CHECK(parse_shard_index(kWhere, empty).value().empty());
}

TEST_CASE("index: what is refused") {
  CHECK(says(bad_index(""), "not JSON"));
  CHECK(says(bad_index("[]"), "expected an object as the index, got an array"));
  CHECK(says(bad_index("{}"), "expected a \"weight_map\", got none"));
  CHECK(says(bad_index(R"({"weight_map":[]})"), "expected an object for \"weight_map\", got an array"));
  CHECK(says(bad_index(R"({"weight_map":{"a":1}})"), "expected a file name for tensor \"a\", got the number 1"));
  CHECK(says(bad_index(R"({"weight_map":{"a":{}}})"), "expected a file name for tensor \"a\", got an object"));
  CHECK(says(bad_index("{\"weight_map\":{\"\xff\":\"x\"}}"), "expected an index in UTF-8"));
  CHECK(says(bad_index(R"({"metadata":)" + std::string(1'000'000, '[')), "nested deeper than 128 levels"));
}

TEST_CASE("index: of two entries of one name, and of two maps, the last counts") {
  MemorySource twice(R"({"weight_map":{"a":"x","b":"y","a":"z"}})");
  CHECK(parse_shard_index(kWhere, twice).value() == WeightMap{{"a", "z"}, {"b", "y"}});
  MemorySource maps(R"({"weight_map":{"a":"x"},"weight_map":{"b":"y"}})");
  CHECK(parse_shard_index(kWhere, maps).value() == WeightMap{{"b", "y"}});
}

TEST_CASE("index: a tensor has any name, and a shard a path of bounded length") {
  const std::string lengthy(limits::kTensorNameMax + 1, 'n');
  MemorySource named(R"({"weight_map":{")" + lengthy + R"(":"sub/x"}})");
  CHECK(parse_shard_index(kWhere, named).value() == WeightMap{{lengthy, "sub/x"}});
  for (const std::string& path : {std::string(), std::string(limits::kPathMax + 1, 'x')})
    CHECK(says(bad_file(path), "tensor \"a\": expected the path of a shard"));
}

TEST_CASE("index: truncation at every byte") {
  std::string text = R"({"metadata":{"total_size":12},"weight_map":{"a":"x.safetensors","b":"y.safetensors"}})";
  for (std::size_t length = 0; length < text.size(); ++length) bad_index(text.substr(0, length));
}
