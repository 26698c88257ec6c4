// Keys and what is made with them. Includes libsodium in the .cc alone.
//
// All of it is BLAKE2b with a key (RFC 7693), X25519 (RFC 7748), and ChaCha20-Poly1305 (RFC 8439), which encrypts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/result.h"

namespace weft::net {

inline constexpr std::size_t kSecretBytes = 32;

// A key in memory: wiped when it goes.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::span<const std::byte, kSecretBytes> bytes);
  ~Secret();
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  std::span<const std::byte, kSecretBytes> bytes() const { return bytes_; }

 private:
  std::array<std::byte, kSecretBytes> bytes_{};
};

using Bytes32 = std::array<std::byte, 32>;

// The cluster's key, from a file of 32 to 4,096 bytes that only its owner can read. Errc::permission: others can read
// it, or it belongs to somebody else; Errc::invalid: its size.
Result<Secret> read_cluster_key(const std::string& path);

// What all `parts` say, under a key and a purpose: equal only where all of them are. Parts cannot run into each other.
Bytes32 keyed_hash(const Secret& key, std::string_view purpose, std::span<const std::span<const std::byte>> parts);
Secret derive(const Secret& key, std::string_view purpose, std::span<const std::span<const std::byte>> parts);
bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b);
Bytes32 random_bytes();

inline constexpr std::size_t kSealBytes = 16;
// Encrypts `text` in its place; `seal` is what proves it and `beside`, which stays as it is. No number is used twice
// with one key.
void seal_text(const Secret& key, std::uint64_t number, std::span<const std::byte> beside, std::span<std::byte> text,
               std::span<std::byte, kSealBytes> seal);
// What was sealed. Errc::permission: not under this key and number, or changed since.
Result<std::vector<std::byte>> open_text(const Secret& key, std::uint64_t number, std::span<const std::byte> beside,
                                         std::span<const std::byte> text, std::span<const std::byte, kSealBytes> seal);

// A pair for one handshake.
class EphemeralKey {
 public:
  EphemeralKey();
  const Bytes32& public_part() const { return public_; }
  // Errc::permission when `theirs` is a point of low order: the shared secret would be known to all.
  Result<Secret> agree(const Bytes32& theirs) const;

 private:
  Secret secret_;
  Bytes32 public_{};
};

}  // namespace weft::net
