// A connection, and the line to a peer: a sequence of connections, each of which replaces the last.
#pragma once

#include <chrono>
#include <memory>

#include "net/transport/wire.h"

namespace weft::net {

struct Line;

// An endpoint of this node with the signs of life of its other end. Guarded by Connections' mutex, except const
// members.
struct Connection {
  using Clock = std::chrono::steady_clock;
  Connection(ConnectionId given, FidPtr<fid_ep> made, Line* made_for)
      : id(given), line(made_for), endpoint(std::move(made)) {}

  const ConnectionId id;
  Line* const line;  // null: the other end made the connection
  FidPtr<fid_ep> endpoint;
  bool up = false;
  std::uint32_t number = 0;                // ConnectionId at the other end; sent with each message
  bool broken = false;                     // to be closed; nothing more is posted
  int failure = 0;                         // libfabric's error number; 0: unknown
  Clock::time_point since = Clock::now();  // up or, before that, being made
  Clock::time_point heard = since;         // the last sign of life
  Clock::time_point spoke = since;         // the last message
  // An empty message for keep-alive: its completion proves that the other end lives.
  fi_context2 pulse{};
  bool pulsing = false;
  Clock::time_point pulsed = since;
};

// A line carries this node's messages to one peer, and its reads there, over a connection that this node made. The
// peer's messages come over a connection that the peer made. So neither end relies on an unproven identity, and two
// nodes can connect to each other at the same time without a collision.
struct Line final : Route {
  using Clock = std::chrono::steady_clock;
  explicit Line(EndpointAddress to) : address(std::move(to)) {}

  const EndpointAddress address;
  // Guarded by Connections' mutex:
  std::unique_ptr<Connection> connection;  // may be null
  bool dialling = false;                   // in use by a dialler, so the connection must not be closed
  int failures = 0;                        // failed attempts since the last good connection
  int failure = 0;                         // libfabric's error number of the last one
  Clock::time_point rests_until{};         // until then operations fail at once
  Clock::time_point used = Clock::now();
  std::uint64_t ends = 0;    // connections that were up and have ended
  std::uint64_t failed = 0;  // attempts to connect that failed
};

}  // namespace weft::net
