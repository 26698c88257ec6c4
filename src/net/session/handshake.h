// The handshake: two daemons prove to each other that they hold the cluster's key, and agree on the keys of a session:
//   caller -> hello: nonce, X25519 key, address     answerer -> welcome: nonce, X25519 key, proof
//   caller -> confirm: proof                        then frames of the session, both ways
// A hello's tag proves only that its maker held the cluster's key: anyone may replay a hello.
// A proof is a hash of hello and welcome under the cluster's key, with a different purpose for each side, so that a
// proof can be neither reflected nor replayed. The session's keys are derived from the cluster's key and the X25519
// agreement together. An attacker who learns the cluster's key later can neither read nor forge frames of an earlier
// session, and one who breaks X25519 still lacks the cluster's key. Pure: frames in, frames out; one thread at a time.
// The caller limits concurrency and run time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/session/frame.h"
#include "net/session/secret.h"
#include "net/session/session.h"
#include "weft/cluster/transport.h"
#include "weft/result.h"

namespace weft::net {

inline constexpr std::uint16_t kWireVersion = 15;

// This node's side of a handshake.
struct Self {
  Secret cluster_key;
  std::string node;           // 1 to limits::kNodeIdMax bytes
  EndpointAddress address;    // at most limits::kEndpointAddressMax bytes
  std::uint64_t session = 0;  // this node's number of the session: random; 0 before a handshake

  Self with_session(std::uint64_t number) const { return {cluster_key, node, address, number}; }
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
  // Checks a welcome and makes the session. Errc::permission: the answerer does not hold the key, or is this node
  // itself. Errc::unsupported: another wire version. Errc::invalid: not a welcome to this hello.
  Result<Agreed> welcomed(const FrameView& welcome) const;

 private:
  Self self_;
  EphemeralKey ephemeral_;
  std::vector<std::byte> hello_;
};

// True if this hello was made, and is unchanged, by a holder of the key. It may be a replay.
bool is_proved(const Secret& cluster_key, const FrameView& hello);

class Answerer {
 public:
  // Answers a hello. The caller is unproved until it confirms. A hello of another wire version gets a welcome too, so
  // that its caller learns this node's version. Errc::invalid: not a hello. Errc::permission: its X25519 key is of low
  // order.
  static Result<Answerer> answer(const Self& self, const FrameView& hello);

  const std::vector<std::byte>& welcome() const { return welcome_; }
  const EndpointAddress& caller_address() const { return caller_address_; }
  const Status& accepted() const { return accepted_; }  // Errc::unsupported: the caller has another wire version
  // Makes the session. Errc::permission: the caller does not hold the key. Errc::unsupported: as accepted().
  Result<Session> confirmed(const FrameView& confirm) const;

 private:
  Answerer(std::vector<std::byte> welcome, EndpointAddress caller_address, Status accepted, Bytes32 expected,
           Session session)
      : welcome_(std::move(welcome)),
        caller_address_(std::move(caller_address)),
        accepted_(std::move(accepted)),
        expected_(expected),
        session_(std::move(session)) {}

  std::vector<std::byte> welcome_;
  EndpointAddress caller_address_;
  Status accepted_;
  Bytes32 expected_;
  Session session_;
};

}  // namespace weft::net
