#include "http/message.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/limits.h"
#include "testing.h"

namespace weft {
namespace {

using Kind = HttpPart::Kind;
using Segments = std::vector<std::string>;
using testing::must;

bool is_refused(std::string_view raw) {
  const auto path = parse_http_path(raw);
  return !path.ok() && path.error().code == Errc::invalid;
}

TEST_CASE("a path is decoded once, and its segments are those that were sent") {
  CHECK(parse_http_path("/")->text == "/");
  CHECK(parse_http_path("/")->segments == Segments{""});
  CHECK(parse_http_path("/a/b%20c")->text == "/a/b c");
  CHECK(parse_http_path("/a/b%20c")->segments == Segments{"a", "b c"});
  CHECK(parse_http_path("/m/refs%2Fpr%2F1/f")->segments == Segments{"m", "refs/pr/1", "f"});
  CHECK(parse_http_path("/m/refs%2Fpr%2F1/f")->text == "/m/refs/pr/1/f");
  CHECK(parse_http_path("/%2541")->text == "/%41");
  CHECK(parse_http_path("/a+b")->text == "/a+b");
  CHECK(parse_http_path("//a/")->segments == Segments{"", "a", ""});
  CHECK(parse_http_path("/...")->text == "/...");
  CHECK(parse_http_path("/%c3%A4")->text == "/\xc3\xa4");
}

TEST_CASE("a path that could leave its directory or end early is refused") {
  for (const char* raw : {"", "a", "*", "http://h/a", "/%", "/%4", "/%4g", "/%g4", "/%00", "/a%00b", "/..", "/.",
                          "/a/../b", "/%2e%2e/b", "/%2E", "/a%2f..%2fb", "/a/%2e%2e%2fb"}) {
    CAPTURE(raw);
    CHECK(is_refused(raw));
  }
  CHECK(is_refused(std::string_view("/a\0b", 4)));
  CHECK(is_refused(std::string(limits::kHttpSegmentsMax + 1, '/')));
  CHECK_FALSE(is_refused(std::string(limits::kHttpSegmentsMax, '/')));
}

struct RangeCase {
  const char* range;
  Kind kind;
  std::uint64_t offset = 0, length = 0;
};

TEST_CASE("a single range is a part, and what is none is the whole") {
  for (const RangeCase& row : std::vector<RangeCase>{{"bytes=0-0", Kind::range, 0, 1},
                                                     {"bytes=2-4", Kind::range, 2, 3},
                                                     {"BYTES= 2 - 4 ", Kind::range, 2, 3},
                                                     {"bytes=2-", Kind::range, 2, 8},
                                                     {"bytes=2-99", Kind::range, 2, 8},
                                                     {"bytes=2-99999999999999999999999", Kind::range, 2, 8},
                                                     {"bytes=-3", Kind::range, 7, 3},
                                                     {"bytes=-99", Kind::range, 0, 10},
                                                     {"bytes=10-", Kind::unsatisfiable},
                                                     {"bytes=10-20", Kind::unsatisfiable},
                                                     {"bytes=99999999999999999999999-", Kind::unsatisfiable},
                                                     {"bytes=-0", Kind::unsatisfiable},
                                                     {"bytes=0-1,3-4", Kind::whole, 0, 10},
                                                     {"bytes=0-,", Kind::whole, 0, 10},
                                                     {"bytes=4-2", Kind::whole, 0, 10},
                                                     {"bytes=-", Kind::whole, 0, 10},
                                                     {"bytes=", Kind::whole, 0, 10},
                                                     {"bytes", Kind::whole, 0, 10},
                                                     {"", Kind::whole, 0, 10},
                                                     {"lines=1-2", Kind::whole, 0, 10},
                                                     {"bytes=+1-2", Kind::whole, 0, 10},
                                                     {"bytes=1-0x2", Kind::whole, 0, 10},
                                                     {"bytes=--1", Kind::whole, 0, 10}}) {
    CAPTURE(row.range);
    const HttpPart part = parse_http_range(row.range, 10);
    CHECK(part.kind == row.kind);
    CHECK(part.offset == row.offset);
    CHECK(part.length == row.length);
    CHECK(part.size == 10);
  }
  CHECK(parse_http_range("bytes=0-", 0).kind == Kind::unsatisfiable);
  CHECK(parse_http_range("bytes=-1", 0).kind == Kind::whole);
}

TEST_CASE("arguments of a query and of a form are decoded in their order") {
  const HttpFields expected = {{"paths", "a b/c"}, {"paths", "x=y"}, {"expand", ""}, {"", "v"}, {"", ""}};
  CHECK(must(parse_http_form("paths=a+b%2Fc&paths=x%3Dy&&expand&=v&=")) == expected);
  CHECK(must(parse_http_form("")).empty());
  CHECK(must(parse_http_form("a=b=c")) == HttpFields{{"a", "b=c"}});
  for (const char* form : {"a=%", "%zz=1", "a=%00"}) {
    CAPTURE(form);
    CHECK(parse_http_form(form).error().code == Errc::invalid);
  }
  std::string many;
  for (std::size_t i = 0; i < limits::kHttpArgumentsMax; ++i) many += "a&";
  CHECK(must(parse_http_form(many)).size() == limits::kHttpArgumentsMax);
  CHECK(parse_http_form(many + "a").error().code == Errc::invalid);
  HttpRequest request;
  request.arguments = {{"a", "1"}, {"a", "2"}};
  CHECK(request.argument("a") == "1");
  CHECK_FALSE(request.argument("A").has_value());
}

TEST_CASE("a range counts for GET, and only for the content that If-Range names") {
  HttpRequest request;
  CHECK(request.part_of(10).kind == Kind::whole);
  request.fields = {{"rANGE", "bytes=1-2"}, {"Range", "bytes=5-6"}};
  CHECK(request.field("range") == "bytes=1-2");
  CHECK_FALSE(request.field("ranges").has_value());
  CHECK(request.part_of(10).offset == 1);
  request.method = HttpRequest::Method::head;
  CHECK(request.part_of(10).kind == Kind::whole);
  request.method = HttpRequest::Method::get;
  request.fields.emplace_back("If-Range", "\"a\"");
  CHECK(request.part_of(10, "\"a\"").kind == Kind::range);
  CHECK(request.part_of(10, "\"b\"").kind == Kind::whole);
  CHECK(request.part_of(10).kind == Kind::whole);
}

TEST_CASE("the answer for a part says which one it is") {
  CHECK(http_part_reply({Kind::whole, 0, 10, 10}).status == 200);
  const HttpReply range = http_part_reply({Kind::range, 2, 3, 10});
  CHECK(range.status == 206);
  CHECK(range.fields == HttpFields{{"Content-Range", "bytes 2-4/10"}, {"Accept-Ranges", "bytes"}});
  const HttpReply none = http_part_reply({Kind::unsatisfiable, 0, 0, 10});
  CHECK(none.status == 416);
  CHECK(std::get<std::string>(none.body) == "there are 10 bytes\n");
}

TEST_CASE("If-None-Match names the content that a client has") {
  const auto has = [](const std::string& condition, HttpRequest::Method method = HttpRequest::Method::get) {
    HttpRequest request;
    request.method = method;
    request.fields = {{"if-none-match", condition}};
    return request.has_content("\"abc\"");
  };
  for (const char* same : {"\"abc\"", "W/\"abc\"", "\"x\", \"abc\"", " * ", "*", "\"x\",W/\"abc\" "}) {
    CAPTURE(same);
    CHECK(has(same));
    CHECK(has(same, HttpRequest::Method::head));
    CHECK_FALSE(has(same, HttpRequest::Method::post));
  }
  for (const char* other : {"", "abc", "\"ab\"", "\"abc", "\"ABC\"", "\"*\"", ","}) {
    CAPTURE(other);
    CHECK_FALSE(has(other));
  }
  CHECK_FALSE(HttpRequest{}.has_content("\"abc\""));
  const HttpReply reply = http_not_modified({{"ETag", "\"abc\""}});
  CHECK(reply.status == 304);
  CHECK(std::get<std::string>(reply.body).empty());
}

}  // namespace
}  // namespace weft
