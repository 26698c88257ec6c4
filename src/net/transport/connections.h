// An endpoint for each connection (FI_EP_MSG), for the providers verbs, net and tcp. A connection is made when there
// is something to send, and kept alive. A failed connection is replaced after a pause that grows with each failure. A
// peer is usable again within 5 s after the cause of the failure has gone.
//
// Why not libfabric's reliable datagrams over verbs and tcp (ofi_rxm): version 1.17 keeps a connection that is in
// error, so a peer that was unreachable for a long time stays unreachable. It also crashes if a peer disconnects at the
// wrong moment.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "net/transport/endpoints.h"
#include "net/transport/event.h"
#include "net/transport/listener.h"

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
  EndpointAddress caller{};  // address of the other end, if that made the connection
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

// A sequence of connections to one peer, each of which replaces the last. A line carries this node's messages to the
// peer, and its reads there, over a connection that this node made. The peer's messages come over a connection that the
// peer made. So neither end relies on an unproven identity, and two nodes can connect to each other at the same time
// without a collision.
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

class Connections final : public Endpoints {
 public:
  static Result<std::unique_ptr<Connections>> open(InfoPtr info);
  Connections(std::unique_ptr<Domain> domain, FidPtr<fid_eq> events)
      : domain_(std::move(domain)), events_(std::move(events)) {}
  ~Connections() override;

  Domain& domain() override { return *domain_; }
  const EndpointAddress& address() const override { return listener_->address(); }
  std::size_t posted_max() const override;
  std::size_t half_open() const override;
  EndpointAddress caller(ConnectionId connection) const override;
  Status start(Owner& owner) override;
  void stop() override;
  void close() override;
  Result<std::shared_ptr<Route>> route(std::span<const std::byte> address) override;
  long post(Route& route, Operation& operation) override;
  long post_receive(MessageOperation& receive) override;
  std::optional<std::uint64_t> ends(Route& route) const override;
  std::uint64_t failures(Route& route) const override;
  void completed(ConnectionId id, bool well, std::size_t received) override;
  void completed_own(const void* context, bool well) override;
  bool poll() override;

 private:
  using Clock = Connection::Clock;

  Status share_receives();
  Result<std::unique_ptr<Connection>> make(fi_info& info, Line* line);
  // Called by a dialler thread:
  void run_dialler();
  void dial(Line& line);
  Result<InfoPtr> info_for(const Line& line) const;
  // Called by the progress thread (connections_poll.cc):
  void accept_callers();
  void accept(fi_info& caller);
  void read_events();
  void take(const Event& event);
  void poll_lines(Clock::time_point now);
  void poll_callers(Clock::time_point now);
  void close_broken();
  // With mutex_ held:
  void dial_soon(const std::shared_ptr<Line>& line);
  void add(Connection& connection);
  void drop(Connection& connection);
  void count_new(const Connection& connection, int more);
  void break_off(Connection& connection, int failure = 0);
  Connection* find(ConnectionId id) const;
  void rest(Line& line, int failure);
  void keep_alive(Connection& connection, Clock::time_point now);
  bool make_room();

  std::unique_ptr<Domain> domain_;
  FidPtr<fid_eq> events_;    // of all connections
  FidPtr<fid_ep> receives_;  // receive context of all connections; null unless the provider is over TCP
  std::unique_ptr<Listener> listener_;
  Owner* owner_ = nullptr;
  bool events_due_ = true;  // used by the progress thread only, as the next two
  Clock::time_point polled_{};
  std::deque<std::unique_ptr<Connection>> closed_;  // kept until all their completions have been read

  mutable std::mutex mutex_;
  std::map<EndpointAddress, std::shared_ptr<Line>> lines_;       // guarded by mutex_, as the members below
  std::map<ConnectionId, std::unique_ptr<Connection>> callers_;  // made by other nodes
  std::unordered_map<ConnectionId, Connection*> by_id_;
  std::unordered_map<const fid*, Connection*> by_endpoint_;
  ConnectionId next_ = 1;
  std::atomic<std::size_t> new_{0};  // connections that are not up yet; changed with mutex_ held
  std::size_t half_open_ = 0;        // the part of new_ that other nodes have made
  bool any_broken_ = false;
  std::deque<std::shared_ptr<Line>> to_dial_;
  bool ending_ = false;
  std::condition_variable changed_;  // to_dial_ or ending_ has changed
  std::vector<std::thread> diallers_;
};

}  // namespace weft::net
