#include "cluster_setup/token.h"

#include <doctest/doctest.h>

#include "base/limits.h"
#include "testing.h"

using namespace weft;
using namespace weft::setup;
using namespace weft::testing;

namespace {

constexpr std::uint64_t kExpires = 1'900'000'000;

Digest digest_of(std::uint8_t byte) {
  Digest digest;
  digest.bytes.fill(byte);
  return digest;
}

Token a_token(const std::string& endpoint = "10.0.0.1:4712", std::uint16_t uses = 3) {
  return must(make_token({digest_of(7), endpoint, kExpires, uses}, digest_of(9)));
}

}  // namespace

TEST_CASE("a token survives its text") {
  for (const char* const endpoint : {"10.0.0.1:4712", "[fe80::1]:1", "node-1.example.org:65535"}) {
    const Token token = a_token(endpoint);
    const Token read = must(parse_token(token_text(token)));
    CHECK(read.key == token.key);
    CHECK(read.id == token.id);
    CHECK(read.expires_s == kExpires);
    CHECK(read.uses == 3);
    CHECK(read.secret == token.secret);
    CHECK(read.endpoint == endpoint);
    CHECK(is_made_by(read, digest_of(9)));
  }
}

TEST_CASE("a token is one plain word") {
  const std::string text = token_text(a_token());
  CHECK(text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
        std::string::npos);
  CHECK(text.size() < 200);
  CHECK(must(parse_token(" " + text + "\n")).uses == 3);
}

TEST_CASE("two tokens have two ids") {
  CHECK(a_token().id != a_token().id);
  CHECK(a_token().secret != a_token().secret);
}

TEST_CASE("another key, and each changed field, proves nothing") {
  const Token token = a_token();
  CHECK_FALSE(is_made_by(token, digest_of(8)));
  const auto forged = [&](auto change) {
    Token other = token;
    change(other);
    return is_made_by(other, digest_of(9));
  };
  CHECK_FALSE(forged([](Token& other) { other.expires_s += 1; }));
  CHECK_FALSE(forged([](Token& other) { other.uses += 1; }));
  CHECK_FALSE(forged([](Token& other) { other.id[0] ^= 1U; }));
  CHECK_FALSE(forged([](Token& other) { other.key.bytes[31] ^= 1U; }));
  CHECK_FALSE(forged([](Token& other) { other.endpoint = "10.0.0.2:4712"; }));
  CHECK_FALSE(forged([](Token& other) { other.secret.bytes[0] ^= 1U; }));
}

TEST_CASE("a token that was cut off, or has a wrong letter, is refused without being repeated") {
  const std::string text = token_text(a_token());
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto read = parse_token(text.substr(0, size));
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().code == Errc::invalid);
    CHECK(read.error().message.find("cut off or mistyped") != std::string::npos);
    if (size > 10) CHECK(read.error().message.find(text.substr(0, size)) == std::string::npos);
  }
  for (std::size_t at = 6; at < text.size(); ++at) {
    std::string other = text;
    other[at] = other[at] == 'A' ? 'B' : 'A';
    CHECK_FALSE(parse_token(other).ok());
  }
}

TEST_CASE("other texts are no tokens") {
  const std::string text = token_text(a_token());
  for (const std::string& other :
       {std::string(), std::string("weft1."), std::string("weft1.!!!!"), "weft2." + text.substr(6), text + "AAAA",
        text + "=", std::string(limits::kJoinTokenMax + 1, 'A'), "weft1." + std::string(limits::kJoinTokenMax, 'A'),
        std::string("weft1.\0\0\0", 9)})
    CHECK_FALSE(parse_token(other).ok());
}

TEST_CASE("a token without uses, or to no place, is refused") {
  CHECK_FALSE(parse_token(token_text(a_token("10.0.0.1:4712", 0))).ok());
  for (const char* const place : {"", "10.0.0.1", ":4712", "10.0.0.1:0", "10.0.0.1:65536", "a b:1", "a/b:1", "a@b:1",
                                  "fe80::1:1", "[]:1", "[host]:1", "-x:1", "10.0.0.1:4712\n"})
    CHECK_FALSE(make_token({digest_of(7), place, kExpires, 1}, digest_of(9)).ok());
}

TEST_CASE("places are written with brackets round an IPv6 address") {
  const JoinPlace place = must(parse_place("[fe80::1]:12"));
  CHECK(place.host == "fe80::1");
  CHECK(place.port == 12);
  CHECK(place_text(place) == "[fe80::1]:12");
  CHECK(place_text(must(parse_place("host:1"))) == "host:1");
}
