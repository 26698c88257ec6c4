#include "net/session/handshake.h"

#include <algorithm>
#include <array>
#include <utility>

#include "net/session/handshake_messages.h"

namespace weft::net {
namespace {

Error wrong_key() {
  return {Errc::permission, "a handshake: the other does not hold this cluster's key"};
}

// Returns the hash of all fields of a welcome but the proof.
Bytes32 hash_of(WelcomeMessage welcome) {
  welcome.proof = {};
  const std::vector<std::byte> bytes = encode_welcome(welcome);
  const std::span<const std::byte> part(bytes);
  return keyed_hash(Secret(), "weft welcome", std::span(&part, 1));
}

using NoiseMessage = std::vector<std::byte>;

NoiseMessage message_in(const HelloMessage& hello, const FrameView& frame) {
  NoiseMessage message(hello.key.begin(), hello.key.end());
  message.insert(message.end(), frame.tag.begin(), frame.tag.end());
  return message;
}

NoiseMessage message_in(const WelcomeMessage& welcome, const FrameView& frame) {
  NoiseMessage message(welcome.key.begin(), welcome.key.end());
  message.insert(message.end(), welcome.proof.begin(), welcome.proof.end());
  message.insert(message.end(), frame.tag.begin(), frame.tag.end());
  return message;
}

// Puts the tag of a Noise message at the end of its frame.
void end_with_tag(std::vector<std::byte>& frame, const NoiseMessage& message) {
  std::ranges::copy(std::span(message).last(kFrameTagBytes), tag_of(frame).begin());
}

std::vector<std::byte> hello_without_tag(const Self& self, const EphemeralKey& ephemeral) {
  const HelloMessage hello{self.node, self.keys.proving().id(), ephemeral.public_part(), self.session, self.address};
  return make_frame({FrameKind::hello, 0, 0, 0}, encode_hello(hello));
}

std::span<const std::byte> prologue_of(const std::vector<std::byte>& hello) {
  return std::span(hello).first(hello.size() - kFrameTagBytes);
}

// A hello that proves one of our keys.
struct ProvedHello {
  const ClusterKey* key;
  NNpsk0 noise;
};

Result<ProvedHello> prove(const KeyRing& keys, const HelloMessage& hello, const FrameView& frame) {
  const ClusterKey* const key = keys.find(hello.key_id);
  if (key == nullptr) return wrong_key();
  ProvedHello proved{key, NNpsk0(NNpsk0::Role::responder, frame.authenticated, key->psk())};
  if (!proved.noise.read(message_in(hello, frame)).ok()) return wrong_key();
  return proved;
}

}  // namespace

Caller::Caller(Self self)
    : self_(std::move(self)),
      hello_(hello_without_tag(self_, ephemeral_)),
      noise_(NNpsk0::Role::initiator, prologue_of(hello_), self_.keys.proving().psk()) {
  const auto message = noise_.write(ephemeral_, {});
  if (message.ok()) end_with_tag(hello_, *message);  // an initiator's write never fails
}

Result<Caller::Agreed> Caller::welcomed(const FrameView& frame) const {
  if (frame.header.kind != FrameKind::welcome || frame.header.session != self_.session)
    return Error{Errc::invalid, "a handshake: expected a welcome to this call"};
  WEFT_TRY(WelcomeMessage welcome, decode_welcome(frame.payload));
  WEFT_CHECK(check_version(welcome.version, welcome.node));
  NNpsk0 noise = noise_;
  const auto hash = noise.read(message_in(welcome, frame));
  if (!hash.ok() || !equal_in_constant_time(*hash, hash_of(welcome))) return wrong_key();
  if (welcome.node == self_.node) return Error{Errc::permission, "a handshake: a node called itself"};
  const auto [to_responder, to_initiator] = noise.split();
  Session session({self_.session, welcome.session, std::move(welcome.node), {}, self_.keys.proving().id()},
                  to_responder, to_initiator);
  WEFT_TRY(std::vector<std::byte> confirm, session.seal(FrameKind::confirm, {}));
  return Agreed{std::move(session), std::move(confirm)};
}

std::optional<Bytes32> key_named_by(const FrameView& frame, const KeyRing& keys) {
  const auto welcome = decode_welcome(frame.payload);
  if (frame.header.kind != FrameKind::welcome || !welcome.ok() || keys.find(welcome->key_id) == nullptr)
    return std::nullopt;
  return welcome->key_id;
}

bool is_proved(const KeyRing& keys, const FrameView& frame) {
  const auto hello = decode_hello(frame.payload);
  return hello.ok() && prove(keys, *hello, frame).ok();
}

Result<Answerer> Answerer::answer(const Self& self, const FrameView& frame) {
  if (frame.header.kind != FrameKind::hello) return Error{Errc::invalid, "a handshake: expected a hello"};
  WEFT_TRY(HelloMessage hello, decode_hello(frame.payload));
  Answerer made;
  made.caller_ = hello.node;
  made.caller_address_ = hello.address;
  made.ours_ = self.session;
  made.accepted_ = check_version(hello.version, hello.node);
  WelcomeMessage welcome{self.node, self.keys.proving().id(), {}, self.session, {}};
  const auto framed = [&] { return make_frame({FrameKind::welcome, 0, hello.session, 0}, encode_welcome(welcome)); };
  auto proved = prove(self.keys, hello, frame);
  if (made.accepted_.ok() && !proved.ok()) made.accepted_ = proved.error();
  if (!made.accepted_.ok()) {
    made.welcome_ = framed();
    return made;
  }
  const EphemeralKey ephemeral;
  welcome.key_id = proved->key->id();
  welcome.key = ephemeral.public_part();
  WEFT_TRY(const NoiseMessage message, proved->noise.write(ephemeral, hash_of(welcome)));
  std::ranges::copy(std::span(message).subspan(welcome.key.size(), welcome.proof.size()), welcome.proof.begin());
  made.welcome_ = framed();
  end_with_tag(made.welcome_, message);
  const auto [to_responder, to_initiator] = proved->noise.split();
  made.session_.emplace(
      Session::Ends{self.session, hello.session, std::move(hello.node), std::move(hello.address), proved->key->id()},
      to_initiator, to_responder);
  return made;
}

Result<Session> Answerer::confirmed(const FrameView& frame) const {
  if (frame.header.kind != FrameKind::confirm || frame.header.session != ours_)
    return Error{Errc::invalid, "a handshake: expected a confirmation of this call"};
  WEFT_CHECK(accepted_);
  Session session = *session_;
  if (!session.open(frame).ok()) return wrong_key();
  return session;
}

}  // namespace weft::net
