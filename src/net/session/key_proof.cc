#include "net/session/key_proof.h"

#include <cstddef>
#include <span>

#include <fmt/core.h>

namespace weft::net {
namespace {

constexpr std::size_t kProofBytes = 16;

}  // namespace

KeyProofs::KeyProofs(const Secret& cluster_key) : key_(derive(cluster_key, "weft member proofs", {})) {}

std::string KeyProofs::of(std::string_view node) const {
  const auto part = std::as_bytes(std::span(node));
  const Bytes32 hash = keyed_hash(key_, "weft member", std::span(&part, 1));
  std::string out;
  for (const std::byte one : std::span(hash).first<kProofBytes>())
    out += fmt::format("{:02x}", std::to_integer<unsigned>(one));
  return out;
}

}  // namespace weft::net
