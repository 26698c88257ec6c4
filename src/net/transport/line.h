// A connection, and the line to a peer that is made of one connection after another.
#pragma once

#include <chrono>
#include <memory>

#include "net/transport/wire.h"

namespace weft::net {

struct Line;

// An endpoint of our own, and what was heard of its other end. Guarded by Connections' mutex, but for what is const.
struct Connection {
  using Clock = std::chrono::steady_clock;
  Connection(ConnectionId given, FidPtr<fid_ep> made, Line* made_for)
      : id(given), line(made_for), endpoint(std::move(made)) {}

  const ConnectionId id;
  Line* const line;  // null: a caller made it
  FidPtr<fid_ep> endpoint;
  bool up = false;
  std::uint32_t number = 0;                // that the other end gave to it: what this end sends comes along with it
  bool broken = false;                     // to be closed; nothing is posted any more
  int failure = 0;                         // libfabric's number, if it is known
  Clock::time_point since = Clock::now();  // it is up, or is being made
  Clock::time_point heard = since;         // the last sign of life
  Clock::time_point spoke = since;         // the last message
  // A message of no bytes, whose completion says that the other end lives.
  fi_context2 pulse{};
  bool pulsing = false;
  Clock::time_point pulsed = since;
};

// What this node sends to one peer, and reads there, goes over a connection that this node made. What the peer sends
// comes over a connection that the peer made: nobody has to be believed about who is at the other end, and two nodes
// that connect to each other at one time get in nobody's way.
struct Line final : Route {
  using Clock = std::chrono::steady_clock;
  explicit Line(EndpointAddress to) : address(std::move(to)) {}

  const EndpointAddress address;
  // Guarded by Connections' mutex:
  std::unique_ptr<Connection> connection;  // may be null
  bool dialling = false;                   // a dialler works at it: the connection may not be closed
  int failures = 0;                        // attempts since the last connection that was any good
  int failure = 0;                         // libfabric's number of the last one
  Clock::time_point rests_until{};         // what is sent meanwhile fails at once
  Clock::time_point used = Clock::now();
  std::uint64_t ends = 0;    // connections that were up and have ended
  std::uint64_t failed = 0;  // attempts to connect that failed
};

}  // namespace weft::net
