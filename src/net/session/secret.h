// Keys, and the hashes and encryption that use them. Only the .cc includes libsodium.
//
// Hashes are keyed BLAKE2b (RFC 7693) and, for Noise, SHA-256; key agreement is X25519 (RFC 7748), encryption is
// ChaCha20-Poly1305 (RFC 8439).
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

// A key in memory. The destructor wipes it.
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

// Reads the cluster's key from a file of 32 to 4,096 bytes. Errc::permission if its mode gives access to group or
// others, or its owner is neither this user nor root. Errc::invalid for another size, or not a regular file.
Result<Secret> read_cluster_key(const std::string& path);
// Returns the key that a file with these bytes has.
Secret key_of(std::span<const std::byte> file);

// Returns the hash of `purpose` and `parts` under a key. Each part is hashed with its length, so no two lists of parts
// hash alike.
Bytes32 keyed_hash(const Secret& key, std::string_view purpose, std::span<const std::span<const std::byte>> parts);
Secret derive(const Secret& key, std::string_view purpose, std::span<const std::span<const std::byte>> parts);
// Returns the SHA-256 hash of the bytes of `a` and then of `b`.
Bytes32 sha256(std::span<const std::byte> a, std::span<const std::byte> b = {});
// Returns the HMAC-SHA-256 (RFC 2104) of the bytes of `a` and then of `b`.
Bytes32 hmac_sha256(const Bytes32& key, std::span<const std::byte> a, std::span<const std::byte> b = {});
void wipe(Bytes32& bytes);
bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b);
Bytes32 random_bytes();

inline constexpr std::size_t kSealBytes = 16;
// Encrypts `text` in place. `seal` authenticates it and `beside`, which stays plain. A number must not be used twice
// with one key. The nonce is four zero bytes and the number, little-endian, as in Noise.
void seal_text(const Secret& key, std::uint64_t number, std::span<const std::byte> beside, std::span<std::byte> text,
               std::span<std::byte, kSealBytes> seal);
// Returns the plain text. Errc::permission if it was not sealed under this key and number, or was changed since.
Result<std::vector<std::byte>> open_text(const Secret& key, std::uint64_t number, std::span<const std::byte> beside,
                                         std::span<const std::byte> text, std::span<const std::byte, kSealBytes> seal);

// A key pair for one handshake.
class EphemeralKey {
 public:
  EphemeralKey();
  explicit EphemeralKey(const Secret& secret);
  const Bytes32& public_part() const { return public_; }
  // Errc::permission if `theirs` is a point of low order: the shared secret would be public.
  Result<Secret> agree(const Bytes32& theirs) const;

 private:
  Secret secret_;
  Bytes32 public_{};
};

}  // namespace weft::net
