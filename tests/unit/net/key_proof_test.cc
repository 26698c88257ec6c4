#include "net/session/key_proof.h"

#include <doctest/doctest.h>

namespace weft::net {
namespace {

TEST_CASE("a proof depends on the key and the node, and on nothing else") {
  const Secret key{std::span<const std::byte, kSecretBytes>(random_bytes())};
  const KeyProofs proofs(key);
  const std::string proof = proofs.of("a");
  CHECK(proof.size() == 32);
  CHECK(proof.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(proof == KeyProofs(key).of("a"));
  CHECK(proof != proofs.of("b"));
  CHECK(proof != KeyProofs(Secret()).of("a"));
}

}  // namespace
}  // namespace weft::net
