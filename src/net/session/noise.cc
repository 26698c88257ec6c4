#include "net/session/noise.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

namespace weft::net {
namespace {

constexpr std::string_view kProtocol = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
static_assert(kProtocol.size() > sizeof(Bytes32), "a shorter name would be padded, not hashed");

// HKDF [4.3] with Count outputs.
template <std::size_t Count>
std::array<Bytes32, Count> hkdf(const Bytes32& chaining_key, std::span<const std::byte> input) {
  Bytes32 extracted = hmac_sha256(chaining_key, input);
  std::array<Bytes32, Count> out{};
  for (std::size_t i = 0; i < Count; ++i) {
    const std::array number{static_cast<std::byte>(i + 1)};
    out.at(i) = i == 0 ? hmac_sha256(extracted, number) : hmac_sha256(extracted, out.at(i - 1), number);
  }
  wipe(extracted);
  return out;
}

Secret taken(Bytes32& bytes) {
  Secret out{std::span<const std::byte, kSecretBytes>(bytes)};
  wipe(bytes);
  return out;
}

}  // namespace

CipherState CipherState::rekeyed() const {
  Bytes32 key{};
  std::array<std::byte, kSealBytes> unused{};
  seal_text(key_, std::numeric_limits<std::uint64_t>::max(), {}, key, unused);
  return CipherState(taken(key));
}

SymmetricState::SymmetricState(std::span<const std::byte> prologue)
    : hash_(sha256(std::as_bytes(std::span(kProtocol)))), chaining_key_(hash_) {
  mix_hash(prologue);
}

void SymmetricState::mix_hash(std::span<const std::byte> data) {
  hash_ = sha256(hash_, data);
}

void SymmetricState::mix_key(std::span<const std::byte> input) {
  auto [chaining_key, key] = hkdf<2>(chaining_key_, input);
  chaining_key_ = chaining_key;
  cipher_.emplace(taken(key));
  nonce_ = 0;
}

void SymmetricState::mix_key_and_hash(std::span<const std::byte> input) {
  auto [chaining_key, hash, key] = hkdf<3>(chaining_key_, input);
  chaining_key_ = chaining_key;
  mix_hash(hash);
  cipher_.emplace(taken(key));
  nonce_ = 0;
}

std::vector<std::byte> SymmetricState::encrypt_and_hash(std::span<const std::byte> plain) {
  std::vector<std::byte> out(plain.size() + kSealBytes);
  std::ranges::copy(plain, out.begin());
  const std::span<std::byte> all(out);
  cipher_->encrypt(nonce_++, hash_, all.first(plain.size()), all.last<kSealBytes>());
  mix_hash(out);
  return out;
}

Result<std::vector<std::byte>> SymmetricState::decrypt_and_hash(std::span<const std::byte> encrypted) {
  const auto text = encrypted.first(encrypted.size() - kSealBytes);
  WEFT_TRY(std::vector<std::byte> plain, cipher_->decrypt(nonce_++, hash_, text, encrypted.last<kSealBytes>()));
  mix_hash(encrypted);
  return plain;
}

NNpsk0::NNpsk0(Role role, std::span<const std::byte> prologue, const Secret& psk) : role_(role), state_(prologue) {
  state_.mix_key_and_hash(psk.bytes());
}

// The token "e" of a pattern with a psk [9.2]: the key of each side is also mixed into the chaining key, so that no two
// handshakes encrypt with one key.
void NNpsk0::mix_ephemeral(std::span<const std::byte> key) {
  state_.mix_hash(key);
  state_.mix_key(key);
}

// The token "ee".
Status NNpsk0::mix_agreement() {
  WEFT_TRY(const Secret agreed, ours_->agree(*theirs_));
  state_.mix_key(agreed.bytes());
  return {};
}

Result<std::vector<std::byte>> NNpsk0::write(const EphemeralKey& ephemeral, std::span<const std::byte> payload) {
  ours_.emplace(ephemeral);
  mix_ephemeral(ephemeral.public_part());
  if (role_ == Role::responder) WEFT_CHECK(mix_agreement());
  const std::vector<std::byte> encrypted = state_.encrypt_and_hash(payload);
  std::vector<std::byte> message(ephemeral.public_part().begin(), ephemeral.public_part().end());
  message.insert(message.end(), encrypted.begin(), encrypted.end());
  return message;
}

Result<std::vector<std::byte>> NNpsk0::read(std::span<const std::byte> message) {
  if (message.size() < kOverhead) return Error{Errc::invalid, "a handshake: its message is too short"};
  const auto key = message.first<sizeof(Bytes32)>();
  std::ranges::copy(key, theirs_.emplace().begin());
  mix_ephemeral(key);
  if (role_ == Role::initiator) WEFT_CHECK(mix_agreement());
  return state_.decrypt_and_hash(message.subspan(key.size()));
}

NNpsk0::Split NNpsk0::split() const {
  auto [to_responder, to_initiator] = hkdf<2>(state_.chaining_key(), {});
  return {CipherState(taken(to_responder)), CipherState(taken(to_initiator))};
}

}  // namespace weft::net
