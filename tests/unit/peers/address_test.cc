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

TEST_CASE("a pair uses the first provider of its own that the member has too") {
  const Endpoint verbs{"verbs", *parse_endpoint("10.0.0.7:1")}, net{"net", *parse_endpoint("10.0.0.7:2")};
  const std::vector<Endpoint> both{verbs, net}, tcp{net};
  CHECK(providers_text(both) == "verbs,net");
  CHECK(addresses_text(both) == "10.0.0.7:1,10.0.0.7:2");
  CHECK(addresses_text({}).empty());
  const auto reached = [](std::string providers, std::string addresses, const std::vector<Endpoint>& own) {
    const auto member = reached_by({"node", "name", std::move(addresses), std::move(providers), 0}, own);
    return member ? member->provider + " " + member->address : "";
  };
  CHECK(reached("verbs,net", "10.0.0.8:1,10.0.0.8:2", both) == "verbs 10.0.0.8:1");
  CHECK(reached("net,verbs", "10.0.0.8:1,10.0.0.8:2", both) == "verbs 10.0.0.8:2");
  CHECK(reached("verbs,net", "10.0.0.8:1,10.0.0.8:2", tcp) == "net 10.0.0.8:2");
  CHECK(reached("net", "10.0.0.8:2", both) == "net 10.0.0.8:2");
  CHECK(reached("verbs", "10.0.0.8:1", tcp).empty());
  CHECK(reached("none", "", both).empty());
  CHECK(reached("", "10.0.0.8:2", both) == " 10.0.0.8:2");
  CHECK(reached("verbs,net", "10.0.0.8:1", tcp).empty());  // a hostile member: fewer addresses than providers
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
