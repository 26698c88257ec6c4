#include "net/session/handshake.h"

#include <algorithm>
#include <array>
#include <utility>

#include "net/session/handshake_messages.h"

namespace weft::net {
namespace {

// The hello and the welcome without its proof, as both sides know them. Proofs and session keys are derived from these.
class Transcript {
 public:
  Transcript(std::span<const std::byte> hello_payload, WelcomeMessage welcome) : hello_(hello_payload) {
    welcome.proof = {};
    welcome_ = encode_welcome(welcome);
  }
  Bytes32 proof(const Secret& cluster_key, std::string_view purpose) const {
    const std::array parts{hello_, std::span<const std::byte>(welcome_)};
    return keyed_hash(cluster_key, purpose, parts);
  }
  Secret session_key(const Secret& cluster_key, const Secret& agreed, std::string_view purpose) const {
    const std::array parts{hello_, std::span<const std::byte>(welcome_), std::span<const std::byte>(agreed.bytes())};
    return derive(cluster_key, purpose, parts);
  }

 private:
  std::span<const std::byte> hello_;
  std::vector<std::byte> welcome_;
};

constexpr std::string_view kHelloTag = "weft handshake hello";
constexpr std::string_view kWelcomeProof = "weft handshake welcome";
constexpr std::string_view kConfirmProof = "weft handshake confirm";
constexpr std::string_view kCallerKey = "weft session caller to answerer";
constexpr std::string_view kAnswererKey = "weft session answerer to caller";

FrameTag hello_tag(const Secret& cluster_key, std::span<const std::byte> authenticated) {
  const Bytes32 hash = keyed_hash(cluster_key, kHelloTag, std::span(&authenticated, 1));
  FrameTag tag{};
  std::copy_n(hash.begin(), tag.size(), tag.begin());
  return tag;
}

Error wrong_key() {
  return {Errc::permission, "a handshake: the other does not hold this cluster's key"};
}

}  // namespace

Caller::Caller(Self self) : self_(std::move(self)) {
  const HelloMessage hello{self_.node, random_bytes(), ephemeral_.public_part(), self_.session, self_.address};
  hello_ = make_frame({FrameKind::hello, 0, 0, 0}, encode_hello(hello));
  const std::span<const std::byte> all(hello_);
  std::ranges::copy(hello_tag(self_.cluster_key, all.first(all.size() - kFrameTagBytes)), tag_of(hello_).begin());
}

Result<Caller::Agreed> Caller::welcomed(const FrameView& frame) const {
  if (frame.header.kind != FrameKind::welcome || frame.header.session != self_.session)
    return Error{Errc::invalid, "a handshake: expected a welcome to this call"};
  WEFT_TRY(WelcomeMessage welcome, decode_welcome(frame.payload));
  WEFT_CHECK(check_version(welcome.version, welcome.node));
  WEFT_TRY(const FrameView hello, parse_frame(hello_));
  const Transcript said(hello.payload, welcome);
  if (!equal_in_constant_time(said.proof(self_.cluster_key, kWelcomeProof), welcome.proof)) return wrong_key();
  if (welcome.node == self_.node) return Error{Errc::permission, "a handshake: a node called itself"};
  WEFT_TRY(const Secret agreed, ephemeral_.agree(welcome.key));
  Session session({self_.session, welcome.session, std::move(welcome.node), {}},
                  said.session_key(self_.cluster_key, agreed, kCallerKey),
                  said.session_key(self_.cluster_key, agreed, kAnswererKey));
  const Bytes32 proof = said.proof(self_.cluster_key, kConfirmProof);
  return Agreed{std::move(session), make_frame({FrameKind::confirm, 0, welcome.session, 0}, encode_confirm(proof))};
}

bool is_proved(const Secret& cluster_key, const FrameView& hello) {
  return equal_in_constant_time(hello_tag(cluster_key, hello.authenticated), hello.tag);
}

Result<Answerer> Answerer::answer(const Self& self, const FrameView& frame) {
  if (frame.header.kind != FrameKind::hello) return Error{Errc::invalid, "a handshake: expected a hello"};
  WEFT_TRY(HelloMessage hello, decode_hello(frame.payload));
  Status accepted = check_version(hello.version, hello.node);
  const EphemeralKey ephemeral;
  WEFT_TRY(const Secret agreed, ephemeral.agree(hello.key));
  WelcomeMessage welcome{self.node, random_bytes(), ephemeral.public_part(), self.session, {}};
  const Transcript said(frame.payload, welcome);
  welcome.proof = said.proof(self.cluster_key, kWelcomeProof);
  Session session({self.session, hello.session, std::move(hello.node), hello.address},
                  said.session_key(self.cluster_key, agreed, kAnswererKey),
                  said.session_key(self.cluster_key, agreed, kCallerKey));
  return Answerer(make_frame({FrameKind::welcome, 0, hello.session, 0}, encode_welcome(welcome)),
                  std::move(hello.address), std::move(accepted), said.proof(self.cluster_key, kConfirmProof),
                  std::move(session));
}

Result<Session> Answerer::confirmed(const FrameView& frame) const {
  if (frame.header.kind != FrameKind::confirm || frame.header.session != session_.ends().ours)
    return Error{Errc::invalid, "a handshake: expected a confirmation of this call"};
  WEFT_CHECK(accepted_);
  WEFT_TRY(const Bytes32 proof, decode_confirm(frame.payload));
  if (!equal_in_constant_time(proof, expected_)) return wrong_key();
  return session_;
}

}  // namespace weft::net
