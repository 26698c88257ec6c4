// How two daemons prove to each other that they hold the cluster's key, and agree on the keys of a session:
//   caller -> hello: nonce, X25519 key, address     answerer -> welcome: nonce, X25519 key, proof
//   caller -> confirm: proof                        then frames of the session, both ways
// A hello's tag says that its maker held the cluster's key, and no more: it may be sent again by anybody.
// The proofs are keyed with the cluster's key over all that was said, with a purpose for each side, so none can be sent
// back or again. The session's keys come from the cluster's key and the X25519 agreement together: who learns the
// cluster's key later can neither read nor forge frames of an earlier session, and who breaks X25519 still lacks the
// cluster's key. Pure: frames in, frames out; one thread at a time. Who drives it bounds how many run and how long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/session/frame.h"
#include "net/session/secret.h"
#include "net/session/session.h"
#include "weft/result.h"
#include "weft/transport.h"

namespace weft::net {

inline constexpr std::uint16_t kWireVersion = 6;

// Who we are in a handshake.
struct Self {
  Secret cluster_key;
  std::string node;           // 1 to limits::kNodeIdMax bytes
  EndpointAddress address;    // at most limits::kEndpointAddressMax bytes
  std::uint64_t session = 0;  // our number for the session: random, not 0
};

class Caller {
 public:
  explicit Caller(Self self);
  // The frame to begin with.
  const std::vector<std::byte>& hello() const { return hello_; }

  struct Agreed {
    Session session;
    std::vector<std::byte> confirm;  // the frame to answer with
  };
  // Errc::permission: the other does not hold the key, or it is this node itself. Errc::unsupported: another wire
  // version. Errc::invalid: no welcome.
  Result<Agreed> welcomed(const FrameView& welcome) const;

 private:
  Self self_;
  EphemeralKey ephemeral_;
  std::vector<std::byte> hello_;
};

// Whether it was made, as it is, by somebody who holds the key, now or long ago.
bool is_proved(const Secret& cluster_key, const FrameView& hello);

class Answerer {
 public:
  // Errc::invalid for what is no hello. The caller may be anybody until it confirms.
  static Result<Answerer> answer(const Self& self, const FrameView& hello);

  const std::vector<std::byte>& welcome() const { return welcome_; }
  const EndpointAddress& caller_address() const { return caller_address_; }
  // Errc::permission: the caller does not hold the key.
  Result<Session> confirmed(const FrameView& confirm) const;

 private:
  Answerer(std::vector<std::byte> welcome, EndpointAddress caller_address, Bytes32 expected, Session session)
      : welcome_(std::move(welcome)),
        caller_address_(std::move(caller_address)),
        expected_(expected),
        session_(std::move(session)) {}

  std::vector<std::byte> welcome_;
  EndpointAddress caller_address_;
  Bytes32 expected_;
  Session session_;
};

}  // namespace weft::net
