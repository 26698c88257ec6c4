#include "net/session/secret.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sodium.h>

#include <algorithm>

#include "base/limits.h"
#include "os/sys.h"

namespace weft::net {
namespace {

unsigned char* raw(std::byte* bytes) {
  return reinterpret_cast<unsigned char*>(bytes);
}
const unsigned char* raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

// Aborts if sodium_init fails, which happens only if the system has no randomness.
void need_sodium() {
  static const bool ready = sodium_init() >= 0;
  if (!ready) sodium_misuse();
}

void add_part(crypto_generichash_state& state, std::span<const std::byte> part) {
  std::array<unsigned char, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i) length.at(i) = static_cast<unsigned char>(part.size() >> (8 * i));
  crypto_generichash_update(&state, length.data(), length.size());
  if (!part.empty()) crypto_generichash_update(&state, raw(part.data()), part.size());
}

using Nonce = std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;
static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == kSealBytes);
static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == kSecretBytes);

Nonce nonce_of(std::uint64_t number) {
  constexpr std::size_t kZeros = 4;
  Nonce nonce{};
  for (std::size_t i = 0; i < sizeof number; ++i) nonce.at(kZeros + i) = static_cast<unsigned char>(number >> (8 * i));
  return nonce;
}

Status check_key_file(const std::string& path, const struct stat& st) {
  WEFT_CHECK(check_private_file(st, "key file", path));
  const auto size = static_cast<std::uint64_t>(st.st_size);
  if (size < kSecretBytes || size > limits::kKeyFileMax)
    return Error{Errc::invalid, fmt::format("key file {}: expected {} to {} bytes, got {}", path, kSecretBytes,
                                            limits::kKeyFileMax, size)};
  return {};
}

}  // namespace

Secret::Secret(std::span<const std::byte, kSecretBytes> bytes) {
  std::copy(bytes.begin(), bytes.end(), bytes_.begin());
}

Secret::~Secret() {
  sodium_memzero(bytes_.data(), bytes_.size());
}

Result<Secret> read_cluster_key(const std::string& path) {
  need_sodium();
  WEFT_TRY(const Fd file, open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  WEFT_TRY(const struct stat st, stat_fd(file.get(), path));
  WEFT_CHECK(check_key_file(path, st));
  std::vector<std::byte> bytes(static_cast<std::size_t>(st.st_size));
  const Status read = read_exact(file.get(), 0, bytes, path);
  const Secret key = key_of(bytes);
  sodium_memzero(bytes.data(), bytes.size());
  if (!read.ok()) return read.error();
  return key;
}

Secret key_of(std::span<const std::byte> file) {
  return derive(Secret(), "weft cluster key", std::span(&file, 1));
}

Bytes32 keyed_hash(const Secret& key, std::string_view purpose, std::span<const std::span<const std::byte>> parts) {
  need_sodium();
  crypto_generichash_state state;
  Bytes32 out{};
  crypto_generichash_init(&state, raw(key.bytes().data()), kSecretBytes, out.size());
  add_part(state, std::as_bytes(std::span(purpose)));
  for (const std::span<const std::byte> part : parts) add_part(state, part);
  crypto_generichash_final(&state, raw(out.data()), out.size());
  return out;
}

Secret derive(const Secret& key, std::string_view purpose, std::span<const std::span<const std::byte>> parts) {
  Bytes32 bytes = keyed_hash(key, purpose, parts);
  Secret out{std::span<const std::byte, kSecretBytes>(bytes)};
  sodium_memzero(bytes.data(), bytes.size());
  return out;
}

void seal_text(const Secret& key, std::uint64_t number, std::span<const std::byte> beside, std::span<std::byte> text,
               std::span<std::byte, kSealBytes> seal) {
  need_sodium();
  const Nonce nonce = nonce_of(number);
  crypto_aead_chacha20poly1305_ietf_encrypt_detached(raw(text.data()), raw(seal.data()), nullptr, raw(text.data()),
                                                     text.size(), raw(beside.data()), beside.size(), nullptr,
                                                     nonce.data(), raw(key.bytes().data()));
}

Result<std::vector<std::byte>> open_text(const Secret& key, std::uint64_t number, std::span<const std::byte> beside,
                                         std::span<const std::byte> text, std::span<const std::byte, kSealBytes> seal) {
  need_sodium();
  const Nonce nonce = nonce_of(number);
  std::vector<std::byte> out(text.size());
  if (crypto_aead_chacha20poly1305_ietf_decrypt_detached(raw(out.data()), nullptr, raw(text.data()), text.size(),
                                                         raw(seal.data()), raw(beside.data()), beside.size(),
                                                         nonce.data(), raw(key.bytes().data())) != 0)
    return Error{Errc::permission, "a sealed text: it is not what was sealed under this key"};
  return out;
}

Bytes32 sha256(std::span<const std::byte> a, std::span<const std::byte> b) {
  need_sodium();
  crypto_hash_sha256_state state;
  Bytes32 out{};
  crypto_hash_sha256_init(&state);
  for (const auto part : {a, b})
    if (!part.empty()) crypto_hash_sha256_update(&state, raw(part.data()), part.size());
  crypto_hash_sha256_final(&state, raw(out.data()));
  return out;
}

Bytes32 hmac_sha256(const Bytes32& key, std::span<const std::byte> a, std::span<const std::byte> b) {
  need_sodium();
  crypto_auth_hmacsha256_state state;
  Bytes32 out{};
  crypto_auth_hmacsha256_init(&state, raw(key.data()), key.size());
  for (const auto part : {a, b})
    if (!part.empty()) crypto_auth_hmacsha256_update(&state, raw(part.data()), part.size());
  crypto_auth_hmacsha256_final(&state, raw(out.data()));
  sodium_memzero(&state, sizeof state);
  return out;
}

void wipe(Bytes32& bytes) {
  sodium_memzero(bytes.data(), bytes.size());
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

Bytes32 random_bytes() {
  need_sodium();
  Bytes32 out{};
  randombytes_buf(out.data(), out.size());
  return out;
}

EphemeralKey::EphemeralKey() : EphemeralKey(Secret(std::span<const std::byte, kSecretBytes>(random_bytes()))) {}

EphemeralKey::EphemeralKey(const Secret& secret) : secret_(secret) {
  crypto_scalarmult_base(raw(public_.data()), raw(secret_.bytes().data()));
}

Result<Secret> EphemeralKey::agree(const Bytes32& theirs) const {
  Bytes32 shared{};
  if (crypto_scalarmult(raw(shared.data()), raw(secret_.bytes().data()), raw(theirs.data())) != 0)
    return Error{Errc::permission, "a handshake: the other's public key is of low order"};
  Secret out{std::span<const std::byte, kSecretBytes>(shared)};
  sodium_memzero(shared.data(), shared.size());
  return out;
}

}  // namespace weft::net
