// One protocol of the Noise Protocol Framework, revision 34 (noiseprotocol.org): Noise_NNpsk0_25519_ChaChaPoly_SHA256.
//   -> psk, e
//   <- e, ee
// Both sides hold one key of 32 bytes, the psk. The first message proves that its maker holds it; the second proves
// that the answerer holds it and has read this first message; the first transport message of the initiator proves that
// the initiator lives. A transport message is secret also from an attacker who learns the psk later.
//
// Why NNpsk0: the nodes of a cluster share one key and no others, so there is no static key that IKpsk2 could prove. An
// IK handshake would need a key pair for each node and a list of all public keys, which each holder of the cluster's
// key could extend. A psk at the start (psk0, not psk2) makes the first message verifiable without any multiplication
// on the curve. SHA256, because libsodium has its HMAC.
//
// The names below are those of the specification; its sections are in brackets. Pure: bytes in, bytes out; one thread
// at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "net/session/secret.h"
#include "weft/result.h"

namespace weft::net {

// The key of one direction [5.1]. The caller gives the nonce of each message, because messages of a session can be lost
// [11.4], and uses none twice. 2^64-1 is no nonce of a message.
class CipherState {
 public:
  explicit CipherState(const Secret& key) : key_(key) {}
  // EncryptWithAd, in place. `tag` authenticates the text, the nonce and `ad`.
  void encrypt(std::uint64_t nonce, std::span<const std::byte> ad, std::span<std::byte> text,
               std::span<std::byte, kSealBytes> tag) const {
    seal_text(key_, nonce, ad, text, tag);
  }
  // DecryptWithAd. Errc::permission: it was not encrypted under this key, nonce and `ad`.
  Result<std::vector<std::byte>> decrypt(std::uint64_t nonce, std::span<const std::byte> ad,
                                         std::span<const std::byte> text,
                                         std::span<const std::byte, kSealBytes> tag) const {
    return open_text(key_, nonce, ad, text, tag);
  }
  CipherState rekeyed() const;  // Rekey [4.2, 11.3]: the key does not follow from the new one

 private:
  Secret key_;
};

// The hash of a handshake so far, and the key that follows from it [5.2].
class SymmetricState {
 public:
  explicit SymmetricState(std::span<const std::byte> prologue);
  void mix_hash(std::span<const std::byte> data);
  void mix_key(std::span<const std::byte> input);
  void mix_key_and_hash(std::span<const std::byte> input);
  std::vector<std::byte> encrypt_and_hash(std::span<const std::byte> plain);  // ends with a tag
  Result<std::vector<std::byte>> decrypt_and_hash(std::span<const std::byte> encrypted);
  const Bytes32& handshake_hash() const { return hash_; }
  const Bytes32& chaining_key() const { return chaining_key_; }

 private:
  Bytes32 hash_{};
  Bytes32 chaining_key_{};
  std::optional<CipherState> cipher_;  // after the first key
  std::uint64_t nonce_ = 0;            // of cipher_
};

// One side of a handshake [5.3]. The initiator writes, then reads; the responder reads, then writes; then split().
class NNpsk0 {
 public:
  enum class Role : std::uint8_t { initiator, responder };
  static constexpr std::size_t kOverhead = sizeof(Bytes32) + kSealBytes;  // of a message, beside its payload

  // `prologue`: the handshake succeeds only if it is the same on both sides.
  NNpsk0(Role role, std::span<const std::byte> prologue, const Secret& psk);

  // Returns the message of this side: the public part of `ephemeral`, then the encrypted payload. Errc::permission: the
  // other side's key is of low order (the specification leaves it to us to refuse it [12.1]).
  Result<std::vector<std::byte>> write(const EphemeralKey& ephemeral, std::span<const std::byte> payload);
  // Returns the payload of the other side's message. Errc::permission: the other side has another psk or prologue, the
  // message was changed, or its key is of low order. The handshake is then over. Errc::invalid: it is too short.
  Result<std::vector<std::byte>> read(std::span<const std::byte> message);

  struct Split {
    CipherState to_responder;
    CipherState to_initiator;
  };
  Split split() const;  // after both messages
  const Bytes32& handshake_hash() const { return state_.handshake_hash(); }

 private:
  void mix_ephemeral(std::span<const std::byte> key);
  Status mix_agreement();

  const Role role_;
  SymmetricState state_;
  std::optional<EphemeralKey> ours_;
  std::optional<Bytes32> theirs_;
};

}  // namespace weft::net
