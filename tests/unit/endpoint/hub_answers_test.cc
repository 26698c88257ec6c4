#include "endpoint/hub_answers.h"

#include <doctest/doctest.h>

#include <string>
#include <variant>
#include <vector>

#include "endpoint/served_file.h"
#include "testing.h"

namespace weft {
namespace {

using Paths = std::vector<std::string>;
using testing::must;

HttpRequest posted(std::string body, std::string type) {
  HttpRequest request;
  request.method = HttpRequest::Method::post;
  request.body = std::move(body);
  if (!type.empty()) request.fields.emplace_back("content-type", std::move(type));
  return request;
}

std::string field_of(const HttpReply& reply, std::string_view name) {
  for (const auto& [own, value] : reply.fields)
    if (own == name) return value;
  return {};
}

TEST_CASE("named paths come as a form or as JSON") {
  const std::string form = "application/x-www-form-urlencoded";
  CHECK(must(named_paths(posted("paths=a&expand=true&paths=b+c%2Fd", form))) == Paths{"a", "b c/d"});
  CHECK(must(named_paths(posted("paths=a", ""))) == Paths{"a"});
  CHECK(must(named_paths(posted("", form))).empty());
  CHECK(must(named_paths(posted(R"({"paths": ["a", "b"], "expand": true})", "Application/JSON; charset=utf-8"))) ==
        Paths{"a", "b"});
  CHECK(must(named_paths(posted(R"({"paths": "a"})", "application/json"))) == Paths{"a"});
  for (const char* json : {"", "{", "[]", "{}", R"({"paths": 1})", R"({"paths": [1]})", R"({"paths": null})"}) {
    CAPTURE(json);
    CHECK(named_paths(posted(json, "application/json")).error().code == Errc::invalid);
  }
  CHECK(named_paths(posted("paths=%zz", form)).error().code == Errc::invalid);
}

TEST_CASE("a refusal has its code, and its message is one line") {
  const HttpReply reply = hub_refusal(404, "EntryNotFound", "no file a\r\nX-Other: b");
  CHECK(reply.status == 404);
  CHECK(field_of(reply, "X-Error-Code") == "EntryNotFound");
  CHECK(field_of(reply, "X-Error-Message").find('\n') == std::string::npos);
  CHECK(field_of(hub_refusal(400, "", "x"), "X-Error-Code").empty());
  CHECK(hub_failure(Error{Errc::unreachable, "x"}).status == 503);
  CHECK(hub_failure(Error{Errc::io, "x"}).status == 503);  // a fetch without a source, as the tree reports it
  CHECK(hub_failure(Error{Errc::corrupt, "x"}).status == 500);
}

TEST_CASE("the next page is the same request at the same server") {
  HttpRequest request;
  request.path = must(parse_http_path("/api/models/a/tree/refs%2Fx/b%20c"));
  request.arguments = {{"recursive", "true"}, {"cursor", "old"}, {"a b", "&"}};
  const std::string rest = "/api/models/a/tree/refs%2Fx/b%20c?cursor=1%3Ad%2Fe&recursive=true&a%20b=%26>; rel=\"next\"";
  CHECK(next_page_link(request, "1:d/e") == "<" + rest);
  request.fields = {{"Host", "node:8080"}};
  CHECK(next_page_link(request, "1:d/e") == "<http://node:8080" + rest);
  request.fields = {{"Host", "node"}, {"X-Forwarded-Proto", "https"}};
  CHECK(next_page_link(request, "1:d/e") == "<https://node" + rest);
  request.fields = {{"Host", "node"}, {"X-Forwarded-Proto", "https://x/"}};
  CHECK(next_page_link(request, "1:d/e") == "<http://node" + rest);
  for (const char* host : {"", "a/b", "a b", "a>; rel=\"x\"", "a\r\nb", "a@b"}) {
    CAPTURE(host);
    request.fields = {{"Host", host}};
    CHECK(next_page_link(request, "1:d/e") == "<" + rest);
  }
}

TEST_CASE("a private and a gated repository are marked as the hub marks them") {
  const auto written = [](const std::string& access) {
    VersionRow version;
    version.model_name = "org/m";
    version.source.access = access;
    JsonWriter json;
    json.begin_object();
    write_repository(json, version, std::string(40, 'a'));
    return json.end_object().take();
  };
  CHECK(written("").find(R"("private":false,"gated":false)") != std::string::npos);
  CHECK(written("private").find(R"("private":true,"gated":false)") != std::string::npos);
  CHECK(written("gated").find(R"("private":false,"gated":"auto")") != std::string::npos);
}

TEST_CASE("a file is known by its SHA-256, and one without a digest by its commit and path") {
  const std::string commit(40, 'a');
  ServedFile file{"a/b", false, 7, digest_from_hex(std::string(64, 'c'))};
  CHECK(etag_of(file, commit) == '"' + std::string(64, 'c') + '"');
  JsonWriter json;
  write_row(json, file, commit);
  CHECK(json.take() == R"({"type":"file","oid":")" + std::string(40, 'c') +
                           R"(","size":7,"path":"a/b","lfs":{"oid":")" + std::string(64, 'c') +
                           R"(","size":7,"pointerSize":126}})");
  write_sibling(json, file, commit, false);
  CHECK(json.take() == R"({"rfilename":"a/b"})");
  file.sha256.reset();
  const std::string unknown = etag_of(file, commit);
  CHECK(unknown.size() == 42);
  CHECK(etag_of(file, std::string(40, 'b')) != unknown);
  file.path = "a/c";
  CHECK(etag_of(file, commit) != unknown);
  write_row(json, file, commit);
  CHECK(json.take().find("lfs") == std::string::npos);
}

}  // namespace
}  // namespace weft
