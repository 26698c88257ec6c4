#include "base/json_fields.h"

#include <doctest/doctest.h>

namespace weft::testing {
namespace {

struct Part {
  std::uint32_t number = 0;
  std::string text;
};

struct Whole {
  std::string text;
  std::uint64_t number = 0;
  double real = 0;
  bool flag = false;
  std::vector<std::string> texts;
  std::optional<std::uint64_t> maybe;
  std::vector<Part> objects;
  std::vector<Part> rows;
};

void fields(JsonFields& f, Part& m) {
  f("number", m.number, 9);
  f("text", m.text);
}

void fields(JsonFields& f, Whole& m) {
  f("text", m.text, 5);
  f("number", m.number, 100);
  f("real", m.real);
  f("flag", m.flag);
  f("texts", m.texts);
  f("maybe", m.maybe);
  f("objects", m.objects);
  f("rows", m.rows, JsonFields::Form::row);
}

Result<Whole> read(const std::string& text) {
  return decode_fields<Whole>(JsonValue::parse(text).value());
}

const std::string kWhole =
    R"({"text":"abc","number":7,"real":0.5,"flag":true,"texts":["x","y"],"objects":[{"number":1,"text":"o"}],)"
    R"("rows":[[2,"r"],[3,"s"]]})";

std::string with(const std::string& old, const std::string& now) {
  std::string text = kWhole;
  return text.replace(text.find(old), old.size(), now);
}

std::string refusal(const std::string& old, const std::string& now) {
  const auto got = read(with(old, now));
  REQUIRE(!got.ok());
  CHECK(got.error().code == Errc::invalid);
  return got.error().message;
}

}  // namespace

TEST_CASE("one list of members writes a message and reads it") {
  const auto got = read(kWhole);
  REQUIRE(got.ok());
  CHECK(got->number == 7);
  CHECK(!got->maybe);
  CHECK(got->rows[1].text == "s");
  CHECK(encode_fields(*got) == kWhole);
  CHECK(read(with("true,", "true,\"maybe\":8,"))->maybe == 8);
  CHECK(!read(with("true,", "true,\"maybe\":null,"))->maybe);
}

TEST_CASE("a member that is missing, of another kind or above its bound is named") {
  CHECK(refusal("\"number\":7,", "") == "\"number\": expected a number without sign and fraction, got nothing");
  CHECK(refusal("7", "-7") == "\"number\": expected a number without sign and fraction, got a negative number");
  CHECK(refusal("7", "101") == "\"number\": expected at most 100, got 101");
  CHECK(refusal("abc", "abcdef") == "\"text\": expected at most 5 bytes, got 6");
  CHECK(refusal("true", "1") == "\"flag\": expected true or false, got a number");
  CHECK(refusal("0.5", "\"x\"").starts_with("\"real\": "));
  CHECK(refusal("\"y\"", "1").starts_with("\"texts\": "));
  CHECK(refusal("true,", "true,\"maybe\":\"x\",").starts_with("\"maybe\": "));
  CHECK(refusal("{\"number\":1,\"text\":\"o\"}", "5").starts_with("\"number\": "));
  CHECK(refusal("[[2,\"r\"],[3,\"s\"]]", "{}") == "\"rows\": expected an array, got an object");
  CHECK(refusal("[2,\"r\"]", "[2]") == "\"text\": expected a text, got nothing");
  CHECK(refusal("[2,\"r\"]", "[2,\"r\",1]").starts_with("expected an array of 2"));
  CHECK(refusal("[2,\"r\"]", "[4294967298,\"r\"]") == "\"number\": expected at most 9, got 4294967298");
}

}  // namespace weft::testing
