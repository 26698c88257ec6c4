#include "base/json_value.h"

#include <doctest/doctest.h>

namespace weft {
namespace {

JsonValue parsed(std::string_view text) {
  auto value = JsonValue::parse(text);
  REQUIRE(value.ok());
  return std::move(value).value();
}

TEST_CASE("members are found by name and kind") {
  const JsonValue value = parsed(R"({"b": "two", "a": 1, "c": [true, "x"], "d": {"e": -1}, "f": 1.5, "g": null})");
  CHECK(*value.number("a") == 1);
  CHECK(*value.text("b") == "two");
  CHECK(value.find("c")->array()->size() == 2);
  CHECK(*value.find("d")->find("e")->negative() == -1);
  CHECK(*value.find("f")->fraction() == 1.5);
  CHECK(value.find("g")->is_null());
  CHECK(value.find("h") == nullptr);
  CHECK(value.find("d")->find("b") == nullptr);
}

TEST_CASE("a member of another type is an error that names it; a missing member can have a default") {
  const JsonValue value = parsed(R"({"a": "1", "n": null})");
  const auto number = value.number("a");
  REQUIRE(!number.ok());
  CHECK(number.error().code == Errc::invalid);
  CHECK(number.error().message == "\"a\": expected a number without sign and fraction, got a text");
  CHECK(value.text("z").error().message == "\"z\": expected a text, got nothing");
  CHECK(*value.number_or("n", 7) == 7);
  CHECK(!value.number_or("a", 7).ok());
}

TEST_CASE("duplicate members, deep nesting and too many values are refused") {
  CHECK(JsonValue::parse(R"({"a": 1, "b": 2, "a": 3})").error().message == "JSON: the member \"a\" is there twice");
  CHECK(!JsonValue::parse("[[[1]]]", {2, 10}).ok());
  CHECK(JsonValue::parse("[[1]]", {2, 3}).ok());
  CHECK(!JsonValue::parse("[[1]]", {2, 2}).ok());
  CHECK(!JsonValue::parse("[1,").ok());
  CHECK(!JsonValue::parse("1 2").ok());
}

}  // namespace
}  // namespace weft
