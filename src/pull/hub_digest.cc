#include "pull/hub_digest.h"

#include <fmt/core.h>

namespace weft {
namespace {

// Begins the digest of a git blob with its header.
Sha1 git_hash(const HubFile& file) {
  Sha1 hash;
  std::string header = fmt::format("blob {}", file.size);
  header.push_back('\0');
  hash.update(std::as_bytes(std::span(header)));
  return hash;
}

std::string hex_of(const Sha1Digest& digest) {
  std::string text;
  for (const std::uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

HubDigest::HubDigest(const HubFile& file)
    : hash_(file.sha256 ? std::variant<Sha256, Sha1>(Sha256()) : std::variant<Sha256, Sha1>(git_hash(file))) {}

void HubDigest::update(std::span<const std::byte> bytes) {
  std::visit([&](auto& hash) { hash.update(bytes); }, hash_);
}

std::string HubDigest::finish() {
  if (auto* plain = std::get_if<Sha256>(&hash_)) return to_hex(plain->finish());
  return hex_of(std::get<Sha1>(hash_).finish());
}

std::string HubDigest::expected(const HubFile& file) {
  return file.sha256 ? to_hex(*file.sha256) : file.git_sha1;
}

std::string_view HubDigest::name(const HubFile& file) {
  return file.sha256 ? "SHA-256" : "git SHA-1";
}

}  // namespace weft
