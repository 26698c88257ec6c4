#include "cluster_setup/crypto.h"

#include <doctest/doctest.h>

#include <ctime>

#include "testing.h"

using namespace weft;
using namespace weft::setup;
using namespace weft::testing;

namespace {

std::uint64_t now_s() {
  return static_cast<std::uint64_t>(std::time(nullptr));
}

}  // namespace

TEST_CASE("HMAC-SHA-256 as RFC 4231 has it, for a key of 32 bytes") {
  // Test case 4 of the RFC has a key of 25 bytes; its zeros up to 32 are the padding of HMAC.
  Digest key;
  for (std::uint8_t i = 0; i < 25; ++i) key.bytes.at(i) = static_cast<std::uint8_t>(i + 1);
  CHECK(to_hex(hmac_sha256(key, std::string(50, '\xcd'))) ==
        "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
}

TEST_CASE("an authority can be opened again, and not with another's key") {
  const Authority one = must(Authority::make("one", now_s())), other = must(Authority::make("other", now_s()));
  CHECK(must(Authority::open(one.files())).files().certificate == one.files().certificate);
  CHECK_FALSE(Authority::open({one.files().certificate, other.files().key}).ok());
  CHECK_FALSE(Authority::open({"", ""}).ok());
  CHECK_FALSE(
      Authority::open({"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", one.files().key}).ok());
  CHECK(must(public_key_digest(one.files().certificate)) != must(public_key_digest(other.files().certificate)));
}

TEST_CASE("an authority signs a request, and the certificate has the key of the request") {
  const Authority authority = must(Authority::make("cluster", now_s()));
  const std::string key = make_private_key();
  const std::string request = must(certificate_request(key, "whatever"));
  const std::string made = must(authority.sign(request, {"n1", {"10.0.0.1", "fe80::1", "n1.example"}}, now_s()));
  // Authority::open() compares the key of the certificate with the private key.
  CHECK(Authority::open({made, key}).ok());
  CHECK_FALSE(Authority::open({made, make_private_key()}).ok());
}

TEST_CASE("a request that is none, or whose signature is wrong, is refused") {
  const Authority authority = must(Authority::make("cluster", now_s()));
  std::string request = must(certificate_request(make_private_key(), "n1"));
  CHECK_FALSE(authority.sign("", {"n1", {}}, now_s()).ok());
  CHECK_FALSE(authority.sign(authority.files().certificate, {"n1", {}}, now_s()).ok());
  const auto at = request.find("-----END") - 20;
  request[at] = request[at] == 'A' ? 'B' : 'A';
  CHECK_FALSE(authority.sign(request, {"n1", {}}, now_s()).ok());
}

TEST_CASE("a host cannot add other names to a certificate") {
  const Authority authority = must(Authority::make("cluster", now_s()));
  const std::string request = must(certificate_request(make_private_key(), "n1"));
  for (const char* const host : {"", "a,DNS:b", "a b", "a\nb", "email:copy", "10.0.0.1/8"})
    CHECK_FALSE(authority.sign(request, {"n1", {host}}, now_s()).ok());
  CHECK(authority.sign(request, {"n1", {}}, now_s()).ok());
}
