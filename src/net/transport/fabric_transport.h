// The transport over libfabric: posts operations, and reads their completions on threads of its own. Two threads take
// turns. The thread that has received a call can answer it at once (after_receiving) while the other reads completions;
// to wake a worker would take longer.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "net/transport/endpoints.h"
#include "net/transport/operation.h"
#include "weft/cluster/transport.h"

namespace weft::net {

class FabricTransport final : public Transport, private Endpoints::Owner {
 public:
  static Result<std::unique_ptr<Transport>> open(std::unique_ptr<Endpoints> endpoints, Receiver receiver,
                                                 std::vector<PassedOver> passed_over = {});
  // Runs `change` while no thread makes progress, and returns when it is done. Windows are opened and closed only
  // there: libfabric 1.17's net looks up a key without the lock that registering and closing memory take.
  void between_progress(const std::function<void()>& change);
  FabricTransport(std::unique_ptr<Endpoints> endpoints, Receiver receiver, std::vector<PassedOver> passed_over);
  ~FabricTransport() override;

  const std::string& provider() const override { return provider_; }
  std::span<const PassedOver> passed_over() const override { return passed_over_; }
  const EndpointAddress& address() const override { return endpoints_->address(); }
  TransportCounters counters() const override;
  std::uint64_t pinned_bytes() const override;
  Result<PeerId> add_peer(std::span<const std::byte> address) override;
  void remove_peer(PeerId peer) override;
  std::optional<std::uint64_t> ends(PeerId peer) const override;
  std::uint64_t failures(PeerId peer) const override;
  Status send(PeerId peer, std::span<const std::byte> message) override;
  bool after_receiving(std::function<void()> job) override;
  EndpointAddress sender() const override { return endpoints_->caller(sender_); }
  Result<std::unique_ptr<Window>> open_window(std::span<const std::byte> memory) override;
  Result<std::shared_ptr<Landing>> open_landing(std::span<std::byte> memory,
                                                std::shared_ptr<const void> owner) override;
  Result<std::unique_ptr<PendingRead>> read(PeerId peer, const RemoteWindow& window, std::uint64_t offset,
                                            std::shared_ptr<Landing> landing, std::size_t at,
                                            std::size_t length) override;

 private:
  // Operations to one peer go out in order. Those that libfabric cannot take yet wait here, so that a peer that does
  // not answer delays no other peer.
  struct Peer {
    std::shared_ptr<Route> route;
    std::deque<std::shared_ptr<Operation>> waiting;
    std::size_t unsent = 0;     // messages, waiting or posted
    std::size_t in_flight = 0;  // posted operations
  };

  Status start();
  std::shared_ptr<Route> route_of(PeerId peer) const;  // null: unknown or removed
  void receive_on(ConnectionId connection, std::size_t count) override;
  void wake() override { fi_cq_signal(endpoints_->domain().queue.get()); }
  void close_registrations();
  Status check_address(std::span<const std::byte> address) const;
  // fabric_progress.cc:
  void run();
  // Called by the progress thread:
  void make_progress();
  void make_changes();
  void drain_error();
  void complete(const fi_cq_data_entry& entry, const Status& outcome);
  void complete_receive(std::shared_ptr<MessageOperation> operation, const Status& outcome, std::size_t received);
  void post_receive(std::shared_ptr<MessageOperation> operation);
  bool submit_waiting();
  void end_reads(const PeerId* peer, std::string_view why);  // nullptr: of all peers

  // With mutex_ held:
  void submit(Peer& peer, std::shared_ptr<Operation> operation);
  bool post(Peer& peer, const std::shared_ptr<Operation>& operation);  // false: try again later
  void end(Operation& operation, Status outcome);

  const std::unique_ptr<Endpoints> endpoints_;
  const std::string provider_;
  const Receiver receiver_;
  const std::vector<PassedOver> passed_over_;
  const bool needs_progress_;        // the provider makes progress only when it is called
  std::mutex turn_;                  // its holder is the progress thread
  std::atomic<int> standing_by_{0};  // threads that wait for turn_
  MessageBuffers receive_buffers_;   // guarded by turn_, as the next three
  std::vector<std::shared_ptr<MessageOperation>> unposted_receives_;
  int retry_ms_ = 1;
  ConnectionId sender_ = 0;    // that brought the message which receiver_ gets now; guarded by turn_
  std::function<void()> job_;  // the progress thread releases turn_, then runs it

  mutable std::mutex mutex_;
  MessageBuffers send_buffers_;                                            // guarded by mutex_
  std::unordered_map<PeerId, Peer> peers_;                                 // guarded by mutex_
  PeerId next_peer_ = 1;                                                   // guarded by mutex_
  std::unordered_map<const void*, std::shared_ptr<Operation>> in_flight_;  // guarded by mutex_; by &context
  TransportCounters counters_;                                             // guarded by mutex_
  struct Change {
    const std::function<void()>& make;
    bool made = false;
  };
  std::mutex changing_;
  std::condition_variable changed_;
  std::deque<Change*> changes_;          // guarded by changing_
  std::atomic<bool> progresses_{false};  // a progress thread will run changes_
  std::atomic<std::thread::id> progress_thread_{};
  std::atomic<bool> ending_{false};
  std::array<std::thread, 2> threads_;
};

}  // namespace weft::net
