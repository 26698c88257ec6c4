#include <doctest/doctest.h>

#include <algorithm>

#include "base/limits.h"
#include "builders.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::string byte(unsigned value) {
  return std::string(1, static_cast<char>(value));
}
std::string big_endian(std::uint64_t value, unsigned bytes) {
  std::string out = little_endian(value, bytes);
  std::ranges::reverse(out);
  return out;
}
std::string text(std::string_view value) {
  return byte(0xd9) + byte(static_cast<unsigned>(value.size())) + std::string(value);
}
std::string array_body(const std::vector<std::uint64_t>& shape, std::string_view type, std::string_view data) {
  std::string out = byte(0x93) + byte(0x90 | static_cast<unsigned>(shape.size() & 15U));
  if (shape.size() > 15) out = byte(0x93) + byte(0xdc) + big_endian(shape.size(), 2);
  for (const std::uint64_t dimension : shape) out += byte(0xcf) + big_endian(dimension, 8);
  return out + text(type) + byte(0xc6) + big_endian(data.size(), 4) + std::string(data);
}
std::string extension(std::string_view body, unsigned type = 1) {
  return byte(0xc9) + big_endian(body.size(), 4) + byte(type) + std::string(body);
}
std::string array(const std::vector<std::uint64_t>& shape, std::string_view type, std::string_view data) {
  return extension(array_body(shape, type, data));
}
std::string map(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string out = byte(0xde) + big_endian(pairs.size(), 2);
  for (const auto& [key, value] : pairs) out += text(key) + value;
  return out;
}

const std::string kData = "0123456789abcdefABCDEFGH";

std::string why_hidden(const std::string& value) {
  const Layout layout = good("m.msgpack", map({{"w", value}}));
  CHECK(layout.format == "flax");
  CHECK(layout.tensors.empty());
  REQUIRE(layout.hidden.size() == 1);
  CHECK(layout.hidden[0].name == "w");
  return layout.hidden[0].why;
}

}  // namespace

TEST_CASE("flax: each array is a tensor, named by its keys") {
  const std::string file =
      map({{"params", map({{"dense", map({{"kernel", array({2, 3}, "float32", kData)}})}})},
           {"scalar", extension(array_body({}, "int32", "wxyz"), 3)},
           {"none", array({0, 3}, "bfloat16", "")},
           {"list", byte(0x92) + array({4}, "uint8", "abcd") + byte(0xc0)},
           {"numbers", byte(0x94) + byte(0xff) + byte(0xd1) + "ab" + byte(0xcb) + "01234567" + byte(0xc3)},
           {"complex", extension("x", 2)},
           {"bytes", byte(0xc4) + byte(2) + "xy"}});
  const Layout layout = good("flax_model.msgpack", file);
  CHECK(layout.format == "flax");
  REQUIRE(layout.tensors.size() == 4);
  const auto named = [&](std::string_view wanted) {
    return *std::ranges::find(layout.tensors, wanted, &FoundTensor::name);
  };
  CHECK(named("params.dense.kernel").shape == Shape{2, 3});
  CHECK(named("params.dense.kernel").dtype == DType::f32);
  CHECK(range_of(named("params.dense.kernel")).offset == file.find(kData));
  CHECK(range_of(named("params.dense.kernel")).length == 24);
  CHECK(named("scalar").shape.empty());
  CHECK(named("none").parts.empty());
  CHECK(range_of(named("list.0")).offset == file.find("abcd", file.find("list")));
  CHECK(layout.hidden.empty());
}

TEST_CASE("flax: an array that weft cannot show is hidden with a reason") {
  CHECK(why_hidden(array({1}, "int4", "x")) == "a type that weft lacks, int4");
  CHECK(why_hidden(array({7}, "float32", kData)) == "expected other bytes for its shape [7], got 24");
  CHECK(why_hidden(array({UINT64_MAX, 8}, "float32", kData)).starts_with("expected other bytes"));
  const std::string unknown = "an array that is not described as Flax does";
  CHECK(why_hidden(array(std::vector<std::uint64_t>(33, 1), "float32", "abcd")) == unknown);
  CHECK(why_hidden(extension(byte(0x93) + byte(0x90) + byte(0xc0))) == unknown);
  CHECK(why_hidden(extension(byte(0x92) + byte(0x90) + text("int8"))) == unknown);
  // An array whose length leads past the end of its extension.
  const std::string body = array_body({24}, "int8", "");
  CHECK(why_hidden(extension(body.substr(0, body.size() - 4) + big_endian(24, 4))).starts_with("an array that"));
}

TEST_CASE("flax: files that are no such map are kept") {
  CHECK(good("m.msgpack", map({{"a", byte(1)}})).format.empty());
  CHECK(good("m.msgpack", map({{"a", byte(1)}})).metadata.empty());
  CHECK(says(kept("m.msgpack", ""), "expected 1 bytes at byte 0"));
  CHECK(says(kept("m.msgpack", map({}) + "x"), "expected the end of the file at byte 3"));
  CHECK(says(kept("m.msgpack", byte(0xc1)), "expected a value at byte 0"));
  CHECK(says(kept("m.msgpack", byte(0x81) + byte(0xc0) + byte(0)), "expected a key at byte 1"));
  CHECK(says(kept("m.msgpack", byte(0xdf) + big_endian(0xffffffff, 4)), "expected 1 bytes at byte 5"));
  CHECK(says(kept("m.msgpack", byte(0xc6) + big_endian(0xffffffff, 4)), "expected 4294967295 bytes"));
  CHECK(says(kept("m.msgpack", byte(0xc9) + big_endian(0xffffffff, 4) + byte(1)), "4294967295 bytes of an array"));
  CHECK(says(kept("m.msgpack", std::string(100, '\x91') + byte(0)), "nested at most 64 deep"));
  CHECK(says(kept("m.msgpack", byte(0xdd) + big_endian(limits::kMsgpackValuesMax + 1, 4) +
                                   std::string(limits::kMsgpackValuesMax + 1, '\0')),
             "expected at most 16000000 values"));
}
