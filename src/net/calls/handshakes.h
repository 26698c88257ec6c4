// The handshakes of other nodes that this node has answered with a welcome, and that wait for their last frame. Bounds
// their number and their time, for callers that hold the cluster's key and for strangers apart. One thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "net/calls/newcomers.h"
#include "net/session/handshake.h"
#include "weft/cluster/transport.h"

namespace weft::net {

// A handshake that has its welcome. Its holder removes the peer from the transport, or makes a session with it.
struct HalfOpen {
  Answerer answerer;
  PeerId peer = 0;
  bool proved = false;               // the hello was made with the cluster's key
  std::vector<std::byte> hello_tag;  // a caller that gets no welcome sends the same hello again
  std::vector<std::byte> welcome;
};

class Handshakes {
 public:
  using Clock = std::chrono::steady_clock;

  // True if a hello from this address may be answered. An unproved hello never displaces another handshake.
  bool admits(const EndpointAddress& address, bool proved);
  // Call when a caller has confirmed from this address, as Newcomers::authenticated().
  void authenticated(const EndpointAddress& address) { newcomers_.authenticated(address); }

  // Adds a handshake under this node's number of the session. At the limit it replaces the oldest handshake, and
  // returns that one's peer. So strangers lock out other callers only during a flood.
  std::optional<PeerId> add(std::uint64_t session, HalfOpen half, Clock::time_point now = Clock::now());
  // Returns the handshake of a proved hello with this tag, until the next change; null if there is none.
  const HalfOpen* find(std::span<const std::byte> hello_tag) const;
  std::optional<HalfOpen> take(std::uint64_t session);
  std::size_t size() const { return half_open_.size(); }

  Clock::time_point next_end() const;                  // time_point::max(): there are none
  std::vector<PeerId> end_due(Clock::time_point now);  // returns the peers of those whose time is over
  std::vector<PeerId> end_all() { return end_due(Clock::time_point::max()); }

 private:
  struct Timed {
    HalfOpen half;
    Clock::time_point until;
  };
  std::size_t count(bool proved) const;

  std::unordered_map<std::uint64_t, Timed> half_open_;  // by session
  Newcomers newcomers_;
};

}  // namespace weft::net
