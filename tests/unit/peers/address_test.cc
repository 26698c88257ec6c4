#include "peers/address.h"

#include <doctest/doctest.h>

#include "testing.h"

namespace weft::testing {

TEST_CASE("addresses are texts and come back") {
  for (const std::string text : {"10.0.0.7:4711", "127.0.0.1:1", "[fe80::1]:65535", "x00ff10"}) {
    const auto address = parse_endpoint(text);
    REQUIRE(address.has_value());
    CHECK(endpoint_text(*address) == text);
  }
  for (const std::string text : {"", "x", "x0", "xzz", "10.0.0.7", "10.0.0.7:0", "10.0.0.7:65536", "host:80", "[::1]",
                                 "x00FF10", "x02000000000152214583180172394122"})
    CHECK(!parse_endpoint(text));
}

TEST_CASE("where to listen") {
  const auto is = [](std::string_view text, const std::string& host, unsigned port) {
    const auto parsed = parse_listen(text);
    return parsed.ok() && parsed->host == host && parsed->port == port;
  };
  CHECK(is("", "127.0.0.1", 0));
  CHECK(is("10.0.0.7", "10.0.0.7", 0));
  CHECK(is("10.0.0.7:80", "10.0.0.7", 80));
  CHECK(is("node7:80", "node7", 80));
  CHECK(is("[::1]:80", "::1", 80));
  CHECK(is("::1", "::1", 0));
  CHECK(is(":80", "127.0.0.1", 80));
  for (const std::string text : {"10.0.0.7:", "10.0.0.7:x", "10.0.0.7:65536", "[::1", "[::1]x"})
    CHECK(!parse_listen(text).ok());
}

}  // namespace weft::testing
