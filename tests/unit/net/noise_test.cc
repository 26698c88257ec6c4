#include "net/session/noise.h"

#include <doctest/doctest.h>

#include <array>
#include <string_view>

#include "testing.h"

namespace weft::net {
namespace {

std::vector<std::byte> bytes_of(std::string_view hex) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return out;
}

Secret secret_of(std::string_view hex) {
  const auto bytes = bytes_of(hex);
  REQUIRE(bytes.size() == kSecretBytes);
  return Secret(std::span(bytes).first<kSecretBytes>());
}

// The vector of Noise_NNpsk0_25519_ChaChaPoly_SHA256 in cacophony.txt, a public list of Noise test vectors that several
// implementations of Noise share.
constexpr std::string_view kPrologue = "4a6f686e2047616c74";
constexpr std::string_view kPsk = "54686973206973206d7920417573747269616e20706572737065637469766521";
constexpr std::string_view kInitiator = "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a";
constexpr std::string_view kResponder = "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b";
constexpr std::string_view kHandshakeHash = "f4d03dc34495c95729ea6de9e1b59004b59733102488b3e24bc441e0be208eaf";
struct Message {
  std::string_view payload;
  std::string_view bytes;
};
constexpr std::array<Message, 6> kMessages{
    {{"4c756477696720766f6e204d69736573",
      "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c794479b962b8aff8485742ac32f905ba45369e2465fb59e138a9"
      "3d67a0d1266b6a54"},
     {"4d757272617920526f746862617264",
      "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843d6062704d5a9c422a8e834423f8c1feada7e8d0d910a1a2c"
      "d030fb584221e3"},
     {"462e20412e20486179656b", "e632c3763d7669067383433197a3baddf146e9e70ad4b4e9e59e0f"},
     {"4361726c204d656e676572", "64c6bee32ea91c8474bb4c21d7a700109ad45af77b29764ba5eb1e"},
     {"4a65616e2d426170746973746520536179", "e2fa0bed0603b62d3ccac2ecabbf3fe33f3e86514909b323361626266cb2471cc8"},
     {"457567656e2042f6686d20766f6e2042617765726b",
      "0c01dc9cec1fe4ddd692e8dd32188aa351088dc91183639a53b57aa4692b5ebdef8b8ca111"}}};

struct Sides {
  NNpsk0 initiator;
  NNpsk0 responder;
};

Sides sides(const Secret& ours, const Secret& theirs, std::string_view prologue = "prologue",
            std::string_view other = "prologue") {
  return {NNpsk0(NNpsk0::Role::initiator, testing::as_bytes(prologue), ours),
          NNpsk0(NNpsk0::Role::responder, testing::as_bytes(other), theirs)};
}

// A transport message with an empty associated data, as the specification has it.
std::vector<std::byte> sent(const CipherState& cipher, std::uint64_t nonce, std::span<const std::byte> payload) {
  std::vector<std::byte> out(payload.begin(), payload.end());
  out.resize(payload.size() + kSealBytes);
  const std::span<std::byte> all(out);
  cipher.encrypt(nonce, {}, all.first(payload.size()), all.last<kSealBytes>());
  return out;
}

Result<std::vector<std::byte>> received(const CipherState& cipher, std::uint64_t nonce,
                                        std::span<const std::byte> message) {
  return cipher.decrypt(nonce, {}, message.first(message.size() - kSealBytes), message.last<kSealBytes>());
}

TEST_CASE("both sides give the public test vector's bytes") {
  const auto prologue = bytes_of(kPrologue);
  NNpsk0 initiator(NNpsk0::Role::initiator, prologue, secret_of(kPsk));
  NNpsk0 responder(NNpsk0::Role::responder, prologue, secret_of(kPsk));
  const auto first =
      testing::must(initiator.write(EphemeralKey(secret_of(kInitiator)), bytes_of(kMessages[0].payload)));
  CHECK(first == bytes_of(kMessages[0].bytes));
  CHECK(testing::must(responder.read(first)) == bytes_of(kMessages[0].payload));
  const auto second =
      testing::must(responder.write(EphemeralKey(secret_of(kResponder)), bytes_of(kMessages[1].payload)));
  CHECK(second == bytes_of(kMessages[1].bytes));
  CHECK(testing::must(initiator.read(second)) == bytes_of(kMessages[1].payload));
  for (const NNpsk0* side : {&initiator, &responder}) {
    const auto& hash = side->handshake_hash();
    CHECK(std::vector(hash.begin(), hash.end()) == bytes_of(kHandshakeHash));
    const auto [to_responder, to_initiator] = side->split();
    for (std::size_t i = 2; i < kMessages.size(); ++i) {
      const CipherState& cipher = i % 2 == 0 ? to_responder : to_initiator;
      const std::uint64_t nonce = i / 2 - 1;
      CHECK(sent(cipher, nonce, bytes_of(kMessages.at(i).payload)) == bytes_of(kMessages.at(i).bytes));
      CHECK(testing::must(received(cipher, nonce, bytes_of(kMessages.at(i).bytes))) ==
            bytes_of(kMessages.at(i).payload));
    }
  }
}

TEST_CASE("a message under another psk, after another prologue or with a changed byte is refused") {
  const Secret psk{random_bytes()};
  const Secret other{random_bytes()};
  const auto payload = testing::as_bytes("payload");
  for (Sides made : {sides(psk, other), sides(psk, psk, "prologue", "another")})
    CHECK(made.responder.read(testing::must(made.initiator.write(EphemeralKey(), payload))).error().code ==
          Errc::permission);
  Sides made = sides(psk, psk);
  const auto first = testing::must(made.initiator.write(EphemeralKey(), payload));
  for (std::size_t at = 0; at < first.size(); ++at) {
    auto changed = first;
    changed[at] ^= std::byte{1};
    NNpsk0 responder = made.responder;
    CHECK(!responder.read(changed).ok());
  }
  CHECK(NNpsk0(made.responder).read(std::span(first).first(NNpsk0::kOverhead - 1)).error().code == Errc::invalid);
  REQUIRE(made.responder.read(first).ok());
  const auto second = testing::must(made.responder.write(EphemeralKey(), payload));
  for (std::size_t at = 0; at < second.size(); ++at) {
    auto changed = second;
    changed[at] ^= std::byte{1};
    NNpsk0 initiator = made.initiator;
    CHECK(!initiator.read(changed).ok());
  }
  CHECK(made.initiator.read(second).ok());
}

TEST_CASE("a key of low order is refused by both sides") {
  const Secret psk{random_bytes()};
  // Valid messages with a key of low order, as a holder of the psk can make them.
  Sides made = sides(psk, psk);
  SymmetricState forged(testing::as_bytes("prologue"));
  forged.mix_key_and_hash(psk.bytes());
  const Bytes32 low{};
  forged.mix_hash(low);
  forged.mix_key(low);
  std::vector<std::byte> message(low.begin(), low.end());
  const auto encrypted = forged.encrypt_and_hash({});
  message.insert(message.end(), encrypted.begin(), encrypted.end());
  REQUIRE(made.responder.read(message).ok());
  CHECK(made.responder.write(EphemeralKey(), {}).error().code == Errc::permission);

  REQUIRE(made.initiator.write(EphemeralKey(), {}).ok());
  CHECK(made.initiator.read(message).error().code == Errc::permission);
}

TEST_CASE("a key that was rolled opens nothing of before, and both sides roll alike") {
  const CipherState first{Secret{random_bytes()}};
  const CipherState second = first.rekeyed();
  const auto message = sent(first, 7, testing::as_bytes("text"));
  CHECK(received(first, 7, message).ok());
  CHECK(received(first, 8, message).error().code == Errc::permission);
  CHECK(received(second, 7, message).error().code == Errc::permission);
  CHECK(received(first.rekeyed(), 9, sent(second, 9, testing::as_bytes("text"))).ok());
}

}  // namespace
}  // namespace weft::net
