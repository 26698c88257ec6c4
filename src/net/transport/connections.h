// Connections of our own (FI_EP_MSG) to all peers: of verbs, net and tcp. They are made when there is something to
// send, kept alive, and made anew after a pause that grows when they fail. A peer is usable again within 5 s of the end
// of whatever was in the way.
//
// Why not libfabric's reliable datagrams over verbs and tcp (ofi_rxm): 1.17 keeps a connection that is in error, so a
// peer that was out of reach for long stays so; and it crashes when a peer disconnects at the wrong moment.
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

#include "net/transport/event.h"
#include "net/transport/line.h"
#include "net/transport/listener.h"
#include "net/transport/wire.h"

namespace weft::net {

class Connections final : public Wire {
 public:
  static Result<std::unique_ptr<Connections>> open(InfoPtr info);
  Connections(std::unique_ptr<Domain> domain, FidPtr<fid_eq> events)
      : domain_(std::move(domain)), events_(std::move(events)) {}
  ~Connections() override;

  Domain& domain() override { return *domain_; }
  const EndpointAddress& address() const override { return listener_->address(); }
  std::size_t posted_max() const override;
  std::size_t half_open() const override;
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
  bool look() override;

 private:
  using Clock = Connection::Clock;

  Status share_receives();
  Result<std::unique_ptr<Connection>> make(fi_info& info, Line* line);
  // A dialler's:
  void run_dialler();
  void dial(Line& line);
  Result<InfoPtr> info_for(const Line& line) const;
  // The progress thread's (connections_look.cc):
  void accept_callers();
  void accept(fi_info& caller);
  void read_events();
  void take(const Event& event);
  void look_at_lines(Clock::time_point now);
  void look_at_callers(Clock::time_point now);
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
  FidPtr<fid_ep> receives_;  // for all connections, with providers over TCP
  std::unique_ptr<Listener> listener_;
  Owner* owner_ = nullptr;
  bool events_due_ = true;  // the progress thread's, as the next two
  Clock::time_point looked_at_{};
  std::deque<std::unique_ptr<Connection>> closed_;  // kept until no completion can name them any more

  mutable std::mutex mutex_;
  std::map<EndpointAddress, std::shared_ptr<Line>> lines_;       // guarded by mutex_, as all that follows
  std::map<ConnectionId, std::unique_ptr<Connection>> callers_;  // that others have made
  std::unordered_map<ConnectionId, Connection*> by_id_;
  std::unordered_map<const fid*, Connection*> by_endpoint_;
  ConnectionId next_ = 1;
  std::atomic<std::size_t> new_{0};  // connections that were never up; changed with mutex_ held
  std::size_t half_open_ = 0;        // those of them that others have made
  bool any_broken_ = false;
  std::deque<std::shared_ptr<Line>> to_dial_;
  bool ending_ = false;
  std::condition_variable changed_;  // there is a line to dial, or the end
  std::vector<std::thread> diallers_;
};

}  // namespace weft::net
