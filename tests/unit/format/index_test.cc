#include <doctest/doctest.h>

#include "builders.h"

using namespace weft;
using namespace weft::testing;

namespace {
constexpr std::string_view kWhere = "dir/model.safetensors.index.json";

Error bad_index(std::string_view text) {
  MemorySource source(text);
  auto map = parse_safetensors_index(kWhere, source);
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
  auto map = parse_safetensors_index(kWhere, source);
  REQUIRE(map.ok());
  CHECK(map->size() == 2);
  CHECK(map->at("a") == "model-00001-of-00002.safetensors");
  CHECK(map->at("b") == "model-00002-of-00002.safetensors");
  MemorySource empty(R"({"weight_map":{}})");
  CHECK(parse_safetensors_index(kWhere, empty).value().empty());
}

TEST_CASE("index: what is refused") {
  CHECK(says(bad_index(""), "not JSON"));
  CHECK(says(bad_index("[]"), "expected an object as the index, got an array"));
  CHECK(says(bad_index("{}"), "expected a \"weight_map\", got none"));
  CHECK(says(bad_index(R"({"weight_map":[]})"), "expected an object for \"weight_map\", got an array"));
  CHECK(says(bad_index(R"({"weight_map":{},"weight_map":{}})"), "expected one \"weight_map\", got two"));
  CHECK(says(bad_index(R"({"weight_map":{"a":"x","a":"x"}})"), "tensor \"a\": expected each name once"));
  CHECK(says(bad_index(R"({"weight_map":{"a":1}})"), "expected a file name for tensor \"a\", got the number 1"));
  CHECK(says(bad_index(R"({"weight_map":{"a":{}}})"), "expected a file name for tensor \"a\", got an object"));
  CHECK(says(bad_index("{\"weight_map\":{\"\xff\":\"x\"}}"), "expected an index in UTF-8"));
  CHECK(says(bad_index(R"({"metadata":)" + std::string(1'000'000, '[')), "nested deeper than 128 levels"));
}

TEST_CASE("index: shards lie beside it") {
  for (const char* name : {"", ".", "..", "../x", "/etc/passwd", "a/b", "x\\u0000y"}) {
    CAPTURE(name);
    CHECK(says(bad_file(name), "tensor \"a\": expected the name of a file beside the index"));
  }
  CHECK(says(bad_file(std::string(256, 'x')), "expected the name of a file"));
}

TEST_CASE("index: truncation at every byte") {
  std::string text = R"({"metadata":{"total_size":12},"weight_map":{"a":"x.safetensors","b":"y.safetensors"}})";
  for (std::size_t length = 0; length < text.size(); ++length) bad_index(text.substr(0, length));
}
