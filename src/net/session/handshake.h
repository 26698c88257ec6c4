// The handshake: two daemons prove to each other that they hold a key of the cluster, and agree on the keys of a
// session. It is Noise_NNpsk0_25519_ChaChaPoly_SHA256 (noise.h), and the confirm is the first transport message:
//   caller -> hello: psk, e     answerer -> welcome: e, ee     caller -> confirm     then frames of the session, both
//   ways
// The prologue is the hello up to its tag. So the caller's version, node, session and address are authenticated. They
// are not secret, because a node with another version or another key names the caller in its log. The payload of the
// second message is a hash of the plain fields of the welcome. A hello proves only that its maker held the key: anyone
// may replay a hello. A confirm can be neither replayed nor reflected, because it needs the X25519 agreement. An
// attacker who learns the cluster's key later can neither read nor forge frames of an earlier session, and one who
// breaks X25519 still lacks the cluster's key. A node accepts two keys while the cluster changes its key
// (cluster_keys.h); the hello names the one that it proves. Pure: frames in, frames out; one thread at a time. The
// caller limits concurrency and run time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/session/cluster_keys.h"
#include "net/session/frame.h"
#include "net/session/noise.h"
#include "net/session/secret.h"
#include "net/session/session.h"
#include "weft/cluster/transport.h"
#include "weft/result.h"

namespace weft::net {

inline constexpr std::uint16_t kWireVersion = 16;

// This node's side of a handshake.
struct Self {
  KeyRing keys;
  std::string node;           // 1 to limits::kNodeIdMax bytes
  EndpointAddress address;    // at most limits::kEndpointAddressMax bytes
  std::uint64_t session = 0;  // this node's number of the session: random
};

// This node in all of its handshakes. `keys` outlives this.
struct Identity {
  const LiveKeys* keys = nullptr;
  std::string node;
  EndpointAddress address;

  Self in_session(std::uint64_t number) const { return {*keys->get(), node, address, number}; }
};

class Caller {
 public:
  explicit Caller(Self self);
  // The first frame to send.
  const std::vector<std::byte>& hello() const { return hello_; }

  struct Agreed {
    Session session;
    std::vector<std::byte> confirm;  // the frame to send next
  };
  // Checks a welcome and makes the session. Errc::permission: the answerer does not accept the key, or is this node
  // itself. Errc::unsupported: another wire version. Errc::invalid: not a welcome to this hello.
  Result<Agreed> welcomed(const FrameView& welcome) const;

 private:
  Self self_;
  EphemeralKey ephemeral_;
  std::vector<std::byte> hello_;
  NNpsk0 noise_;  // after its first message
};

// Returns the key of `keys` that this welcome names. Anyone can make such a welcome.
std::optional<Bytes32> key_named_by(const FrameView& welcome, const KeyRing& keys);

// True if this hello was made, and is unchanged, by a holder of one of the keys. It may be a replay. Costs a few
// hashes.
bool is_proved(const KeyRing& keys, const FrameView& hello);

class Answerer {
 public:
  // Answers a hello. The caller is unproved until it confirms. A hello of another wire version or with another key gets
  // a welcome too, so that its caller learns why it is refused; this costs no multiplication on the curve.
  // Errc::invalid: not a hello. Errc::permission: its X25519 key is of low order.
  static Result<Answerer> answer(const Self& self, const FrameView& hello);

  const std::vector<std::byte>& welcome() const { return welcome_; }
  const std::string& caller() const { return caller_; }  // its node, as it claims
  const EndpointAddress& caller_address() const { return caller_address_; }
  // Errc::unsupported: the caller has another wire version. Errc::permission: its hello proves none of our keys.
  const Status& accepted() const { return accepted_; }
  // Makes the session. Errc::permission: the caller does not hold the key. Errors of accepted().
  Result<Session> confirmed(const FrameView& confirm) const;

 private:
  Answerer() = default;

  std::vector<std::byte> welcome_;
  std::string caller_;
  EndpointAddress caller_address_;
  Status accepted_;
  std::uint64_t ours_ = 0;          // this node's number of the session
  std::optional<Session> session_;  // of an accepted caller
};

}  // namespace weft::net
