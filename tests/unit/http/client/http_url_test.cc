#include "http/client/http_url.h"

#include <doctest/doctest.h>

#include "base/limits.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

TEST_CASE("url: the origin is scheme, host and port") {
  const HttpUrl url = must(parse_http_url("HTTPS://Hub.Example/a/b?x=1#part"));
  CHECK(url.origin == "https://hub.example:443");
  CHECK(url.host() == "hub.example:443");
  CHECK(url.secure);
  CHECK(url.text.ends_with("/a/b?x=1"));
  CHECK(url.shown.ends_with("/a/b"));
  CHECK(must(parse_http_url("http://127.0.0.1:8080")).origin == "http://127.0.0.1:8080");
  CHECK(must(parse_http_url("http://hub.example:80/")).origin == must(parse_http_url("http://hub.example")).origin);
  CHECK(must(parse_http_url("http://hub.example:443/")).origin != must(parse_http_url("https://hub.example")).origin);
}

TEST_CASE("url: other schemes, users and texts are refused, and the message does not repeat them") {
  for (const std::string& text :
       {std::string(""), std::string("hub.example/secret"), std::string("file:///etc/secret"),
        std::string("ftp://hub.example/secret"), std::string("http://user:secret@hub.example/"), std::string("http://"),
        std::string("http://hub.example/sec\x01ret"), std::string("http://h/secret\0x", 17),
        "http://hub.example/secret" + std::string(limits::kHttpUrlMax, 'a')}) {
    CAPTURE(text.substr(0, 100));
    const auto url = parse_http_url(text);
    REQUIRE_FALSE(url.ok());
    CHECK(url.error().code == Errc::invalid);
    CHECK(url.error().message.find("secret") == std::string::npos);
  }
}

TEST_CASE("url: references are relative to the base") {
  const HttpUrl base = must(parse_http_url("https://hub.example/a/b?x=1"));
  CHECK(must(resolve_http_url(base, "/c?y=2")).text == "https://hub.example/c?y=2");
  CHECK(must(resolve_http_url(base, "c")).text == "https://hub.example/a/c");
  CHECK(must(resolve_http_url(base, "http://other.example/c#d")).text == "http://other.example/c");
  CHECK(must(resolve_http_url(base, "//other.example/c")).origin == "https://other.example:443");
  CHECK_FALSE(resolve_http_url(base, "file:///etc/passwd").ok());
  CHECK_FALSE(resolve_http_url(base, "http://user@other.example/").ok());
}
