#include "fakes/twin_transport.h"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "net/transport/checks.h"
#include "net/transport/landing.h"
#include "net/transport/read_outcome.h"

namespace weft::net {
namespace {

using NodeId = std::uint64_t;
constexpr std::size_t kUnsentPerPeerMax = 32;

// A message to a node, or a read of one of its windows, in flight.
struct Parcel {
  NodeId from = 0;
  PeerId peer = 0;  // the sender's id of the receiver
  std::vector<std::byte> message;
  std::shared_ptr<ReadOutcome> outcome;  // this and the fields below: of a read
  RemoteWindow window;
  std::uint64_t offset = 0;
  LandingUse landing;
  std::size_t at = 0;
  std::size_t length = 0;
};

struct Node {
  std::deque<Parcel> inbox;
  std::map<std::uint64_t, std::span<const std::byte>> windows;  // by key
  TransportCounters counters;
  bool stopped = false;
  bool ending = false;
};

Error gone(PeerId peer) {
  return {Errc::unreachable, fmt::format("peer {}: not known, or removed", peer)};
}

EndpointAddress address_of(NodeId id) {
  EndpointAddress address(sizeof id);
  std::memcpy(address.data(), &id, sizeof id);
  return address;
}

}  // namespace

struct TwinNetwork::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<NodeId, Node> nodes;  // guarded by mutex, like the fields below
  std::mt19937_64 random{std::random_device{}()};
  NodeId next = 1;
};

namespace {

class TwinWindow final : public Window {
 public:
  TwinWindow(std::shared_ptr<TwinNetwork::State> network, NodeId node, RemoteWindow remote)
      : network_(std::move(network)), node_(node), remote_(remote) {}
  ~TwinWindow() override {
    const std::lock_guard lock(network_->mutex);
    const auto found = network_->nodes.find(node_);
    if (found != network_->nodes.end()) found->second.windows.erase(remote_.key);
  }
  TwinWindow(const TwinWindow&) = delete;
  TwinWindow& operator=(const TwinWindow&) = delete;
  RemoteWindow remote() const override { return remote_; }

 private:
  std::shared_ptr<TwinNetwork::State> network_;
  NodeId node_;
  RemoteWindow remote_;
};

class TwinTransport final : public Transport {
 public:
  TwinTransport(std::shared_ptr<TwinNetwork::State> network, NodeId id, Receiver receiver)
      : network_(std::move(network)), id_(id), address_(address_of(id)), receiver_(std::move(receiver)) {
    thread_ = std::thread([this] { run(); });
  }
  ~TwinTransport() override;

  const std::string& provider() const override { return provider_; }
  const EndpointAddress& address() const override { return address_; }
  TransportCounters counters() const override;
  Result<PeerId> add_peer(std::span<const std::byte> address) override;
  void remove_peer(PeerId peer) override;
  Status send(PeerId peer, std::span<const std::byte> message) override;
  Result<std::unique_ptr<Window>> open_window(std::span<const std::byte> memory) override;
  Result<std::shared_ptr<Landing>> open_landing(std::span<std::byte> memory,
                                                std::shared_ptr<const void> owner) override;
  Result<std::unique_ptr<PendingRead>> read(PeerId peer, const RemoteWindow& window, std::uint64_t offset,
                                            std::shared_ptr<Landing> landing, std::size_t at,
                                            std::size_t length) override;

 private:
  void run();
  // Called with the network's mutex held:
  Result<Node*> node_of(PeerId peer);
  void answer(const Node& self, Parcel& parcel);

  std::shared_ptr<TwinNetwork::State> network_;
  const NodeId id_;
  const std::string provider_ = "twin";
  const EndpointAddress address_;
  const Receiver receiver_;
  std::map<PeerId, NodeId> peers_;  // guarded by the network's mutex, like next_peer_
  PeerId next_peer_ = 1;
  std::thread thread_;
};

TwinTransport::~TwinTransport() {
  {
    const std::lock_guard lock(network_->mutex);
    network_->nodes.at(id_).ending = true;
  }
  network_->changed.notify_all();
  thread_.join();
  const std::lock_guard lock(network_->mutex);
  for (Parcel& parcel : network_->nodes.at(id_).inbox)
    if (parcel.outcome) parcel.outcome->finish(gone(parcel.peer));
  network_->nodes.erase(id_);
  for (auto& [id, node] : network_->nodes)
    for (Parcel& parcel : node.inbox)
      if (parcel.from == id_ && parcel.outcome) parcel.outcome->finish(gone(parcel.peer));
}

void TwinTransport::run() {
  std::unique_lock lock(network_->mutex);
  Node& self = network_->nodes.at(id_);
  for (;;) {
    network_->changed.wait(lock, [&] { return self.ending || (!self.stopped && !self.inbox.empty()); });
    if (self.ending) return;
    Parcel parcel = std::move(self.inbox.front());
    self.inbox.pop_front();
    if (parcel.outcome) {
      answer(self, parcel);
      continue;
    }
    ++self.counters.messages_received;
    lock.unlock();
    if (receiver_) receiver_(parcel.message);
    lock.lock();
  }
}

// Carries out a one-sided read: it uses only the windows of this node.
void TwinTransport::answer(const Node& self, Parcel& parcel) {
  const auto window = self.windows.find(parcel.window.key);
  const bool allowed = window != self.windows.end() && parcel.offset <= window->second.size() &&
                       parcel.length <= window->second.size() - parcel.offset;
  if (allowed)
    std::memcpy(parcel.landing->bytes().data() + parcel.at, window->second.data() + parcel.offset, parcel.length);
  const auto reader = network_->nodes.find(parcel.from);
  if (allowed && reader != network_->nodes.end()) ++reader->second.counters.reads_done;
  parcel.outcome->finish(allowed ? Status{} : Status{Error{Errc::permission, "a peer: no such window"}});
}

TransportCounters TwinTransport::counters() const {
  const std::lock_guard lock(network_->mutex);
  return network_->nodes.at(id_).counters;
}

Result<PeerId> TwinTransport::add_peer(std::span<const std::byte> address) {
  NodeId id = 0;
  if (address.size() != sizeof id)
    return Error{Errc::invalid, fmt::format("a peer's address: expected {} bytes, got {}", sizeof id, address.size())};
  std::memcpy(&id, address.data(), sizeof id);
  const std::lock_guard lock(network_->mutex);
  peers_[next_peer_] = id;
  return next_peer_++;
}

void TwinTransport::remove_peer(PeerId peer) {
  const std::lock_guard lock(network_->mutex);
  peers_.erase(peer);
  for (auto& [id, node] : network_->nodes)
    for (Parcel& parcel : node.inbox)
      if (parcel.from == id_ && parcel.peer == peer && parcel.outcome) parcel.outcome->finish(gone(peer));
}

Result<Node*> TwinTransport::node_of(PeerId peer) {
  const auto known = peers_.find(peer);
  if (known == peers_.end()) return gone(peer);
  const auto node = network_->nodes.find(known->second);
  return node == network_->nodes.end() ? nullptr : &node->second;
}

// A message to a missing peer gets lost, as on a network.
Status TwinTransport::send(PeerId peer, std::span<const std::byte> message) {
  WEFT_CHECK(check_message(message));
  {
    const std::lock_guard lock(network_->mutex);
    WEFT_TRY(Node * node, node_of(peer));
    if (node == nullptr) return {};
    const auto unsent = std::count_if(node->inbox.begin(), node->inbox.end(),
                                      [&](const Parcel& parcel) { return parcel.from == id_ && !parcel.outcome; });
    if (static_cast<std::size_t>(unsent) >= kUnsentPerPeerMax)
      return Error{Errc::busy, fmt::format("peer {}: {} messages are unsent", peer, unsent)};
    Parcel parcel;
    parcel.from = id_;
    parcel.peer = peer;
    parcel.message.assign(message.begin(), message.end());
    node->inbox.push_back(std::move(parcel));
    ++network_->nodes.at(id_).counters.messages_sent;
  }
  network_->changed.notify_all();
  return {};
}

Result<std::unique_ptr<Window>> TwinTransport::open_window(std::span<const std::byte> memory) {
  if (memory.empty()) return Error{Errc::invalid, "a window of no bytes"};
  const std::lock_guard lock(network_->mutex);
  const RemoteWindow remote{0, network_->random(), memory.size()};
  network_->nodes.at(id_).windows[remote.key] = memory;
  return std::unique_ptr<Window>(std::make_unique<TwinWindow>(network_, id_, remote));
}

Result<std::shared_ptr<Landing>> TwinTransport::open_landing(std::span<std::byte> memory,
                                                             std::shared_ptr<const void> owner) {
  if (memory.empty()) return Error{Errc::invalid, "a landing of no bytes"};
  return std::shared_ptr<Landing>(std::make_shared<CountedLanding>(memory, std::move(owner)));
}

Result<std::unique_ptr<PendingRead>> TwinTransport::read(PeerId peer, const RemoteWindow& window, std::uint64_t offset,
                                                         std::shared_ptr<Landing> landing, std::size_t at,
                                                         std::size_t length) {
  WEFT_CHECK(check_read(window, offset, *landing, at, length));
  LandingUse use(std::static_pointer_cast<CountedLanding>(std::move(landing)));
  Parcel parcel{id_, peer, {}, std::make_shared<ReadOutcome>(), window, offset, std::move(use), at, length};
  auto outcome = parcel.outcome;
  {
    const std::lock_guard lock(network_->mutex);
    WEFT_TRY(Node * node, node_of(peer));
    if (node == nullptr)
      outcome->finish(Error{Errc::unreachable, fmt::format("peer {}: nobody is there", peer)});
    else
      node->inbox.push_back(std::move(parcel));
  }
  network_->changed.notify_all();
  return std::unique_ptr<PendingRead>(std::make_unique<AwaitedRead>(std::move(outcome)));
}

}  // namespace

TwinNetwork::TwinNetwork() : state_(std::make_shared<State>()) {}
TwinNetwork::~TwinNetwork() = default;

std::unique_ptr<Transport> TwinNetwork::open(Transport::Receiver receiver) {
  NodeId id = 0;
  {
    const std::lock_guard lock(state_->mutex);
    id = state_->next++;
    state_->nodes[id];
  }
  return std::make_unique<TwinTransport>(state_, id, std::move(receiver));
}

void TwinNetwork::stop(const EndpointAddress& address) {
  const std::lock_guard lock(state_->mutex);
  for (auto& [id, node] : state_->nodes)
    if (address_of(id) == address) node.stopped = true;
}

void TwinNetwork::go_on(const EndpointAddress& address) {
  {
    const std::lock_guard lock(state_->mutex);
    for (auto& [id, node] : state_->nodes)
      if (address_of(id) == address) node.stopped = false;
  }
  state_->changed.notify_all();
}

}  // namespace weft::net
