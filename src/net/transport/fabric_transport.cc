#include "net/transport/fabric_transport.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

#include "base/limits.h"
#include "net/transport/checks.h"

namespace weft::net {
namespace {

constexpr std::size_t kUnsentPerPeerMax = 32;

class FabricWindow final : public Window {
 public:
  FabricWindow(FabricTransport& transport, Registration registration, RemoteWindow remote)
      : transport_(transport), registration_(std::move(registration)), remote_(remote) {}
  ~FabricWindow() override {
    transport_.between_progress([this] { registration_.close(); });
  }
  RemoteWindow remote() const override { return remote_; }

 private:
  FabricTransport& transport_;
  Registration registration_;
  RemoteWindow remote_;
};

Error no_peer(PeerId peer) {
  return {Errc::unreachable, fmt::format("peer {}: not known, or removed", peer)};
}

}  // namespace

FabricTransport::FabricTransport(std::unique_ptr<Endpoints> endpoints, Receiver receiver,
                                 std::vector<PassedOver> passed_over)
    : endpoints_(std::move(endpoints)),
      provider_(endpoints_->domain().provider()),
      receiver_(std::move(receiver)),
      passed_over_(std::move(passed_over)),
      needs_progress_(endpoints_->domain().info->domain_attr->data_progress == FI_PROGRESS_MANUAL),
      receive_buffers_(endpoints_->domain(), limits::kReceiveBuffersMax),
      send_buffers_(endpoints_->domain(), limits::kSendBuffersMax) {}

Result<std::unique_ptr<Transport>> FabricTransport::open(std::unique_ptr<Endpoints> endpoints, Receiver receiver,
                                                         std::vector<PassedOver> passed_over) {
  auto made = std::make_unique<FabricTransport>(std::move(endpoints), std::move(receiver), std::move(passed_over));
  WEFT_CHECK(made->start());
  return std::unique_ptr<Transport>(std::move(made));
}

Status FabricTransport::start() {
  if (Status started = endpoints_->start(*this); !started.ok())
    return Error{started.error().code, fmt::format("provider {}: {}", provider_, started.error().message)};
  progresses_ = true;
  for (std::thread& thread : threads_) thread = std::thread([this] { run(); });
  return {};
}

// Endpoints are closed before the buffers of operations in flight are freed: until then libfabric may write to them.
FabricTransport::~FabricTransport() {
  ending_ = true;
  wake();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
  endpoints_->stop();
  end_reads(nullptr, "this end was closed");
  if (endpoints_->domain().needs(FI_MR_ENDPOINT)) close_registrations();
  endpoints_->close();
  in_flight_.clear();
  peers_.clear();
}

// Closes the registrations of landings and message buffers. Memory that is bound to an endpoint must be closed before
// the endpoint.
void FabricTransport::close_registrations() {
  const auto close = [](Operation& operation) {
    if (operation.kind == OperationKind::read) static_cast<ReadOperation&>(operation).landing().registration().close();
  };
  for (const auto& [context, operation] : in_flight_) close(*operation);
  for (const auto& [id, peer] : peers_)
    for (const auto& operation : peer.waiting) close(*operation);
  receive_buffers_.close_registrations();
  send_buffers_.close_registrations();
}

TransportCounters FabricTransport::counters() const {
  const std::size_t half_open = endpoints_->half_open();
  const std::lock_guard lock(mutex_);
  TransportCounters out = counters_;
  out.half_open = half_open;
  out.registrations = endpoints_->domain().registrations;
  return out;
}

std::uint64_t FabricTransport::pinned_bytes() const {
  return endpoints_->domain().needs(FI_MR_LOCAL) ? endpoints_->domain().registered.load() : 0;
}

// All addresses of a provider have the same length. Socket addresses also begin with the same family.
Status FabricTransport::check_address(std::span<const std::byte> address) const {
  const EndpointAddress& own = endpoints_->address();
  const std::uint32_t format = endpoints_->domain().info->addr_format;
  const bool sockets = format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
  if (address.size() != own.size())
    return Error{Errc::invalid, fmt::format("a peer's address: expected {} bytes, got {}", own.size(), address.size())};
  if (sockets && std::memcmp(address.data(), own.data(), sizeof(sa_family_t)) != 0)
    return Error{Errc::invalid, "a peer's address: expected one of this node's address family, got another"};
  return {};
}

Result<PeerId> FabricTransport::add_peer(std::span<const std::byte> address) {
  WEFT_CHECK(check_address(address));
  WEFT_TRY(auto route, endpoints_->route(address));
  const std::lock_guard lock(mutex_);
  peers_[next_peer_].route = std::move(route);
  return next_peer_++;
}

void FabricTransport::remove_peer(PeerId peer) {
  std::deque<std::shared_ptr<Operation>> waiting;
  {
    const std::lock_guard lock(mutex_);
    const auto found = peers_.find(peer);
    if (found == peers_.end()) return;
    waiting = std::move(found->second.waiting);
    peers_.erase(found);
    for (const auto& operation : waiting) end(*operation, no_peer(peer));
  }
  end_reads(&peer, "it was removed");
}

std::shared_ptr<Route> FabricTransport::route_of(PeerId peer) const {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(peer);
  return found == peers_.end() ? nullptr : found->second.route;
}

std::optional<std::uint64_t> FabricTransport::ends(PeerId peer) const {
  const auto route = route_of(peer);
  return route ? endpoints_->ends(*route) : std::nullopt;
}

std::uint64_t FabricTransport::failures(PeerId peer) const {
  const auto route = route_of(peer);
  return route ? endpoints_->failures(*route) : 0;
}

Status FabricTransport::send(PeerId peer, std::span<const std::byte> message) {
  WEFT_CHECK(check_message(message));
  {
    const std::lock_guard lock(mutex_);
    const auto found = peers_.find(peer);
    if (found == peers_.end()) return no_peer(peer);
    if (found->second.unsent >= kUnsentPerPeerMax)
      return Error{Errc::busy, fmt::format("peer {}: {} messages are unsent", peer, kUnsentPerPeerMax)};
    const auto buffer = send_buffers_.take();
    if (!buffer) return Error{Errc::busy, "all message buffers are in flight"};
    std::memcpy(buffer->bytes.data(), message.data(), message.size());
    auto operation = std::make_shared<MessageOperation>(OperationKind::send, *buffer);
    operation->length = message.size();
    operation->peer = peer;
    ++found->second.unsent;
    submit(found->second, std::move(operation));
  }
  return {};
}

Result<std::unique_ptr<Window>> FabricTransport::open_window(std::span<const std::byte> memory) {
  if (memory.empty()) return Error{Errc::invalid, "a window of no bytes"};
  Result<Registration> made = Error{Errc::internal, "nothing was registered"};
  between_progress([&] { made = Registration::make(endpoints_->domain(), memory, FI_REMOTE_READ); });
  WEFT_TRY(Registration registration, std::move(made));
  const std::uint64_t address =
      endpoints_->domain().needs(FI_MR_VIRT_ADDR) ? reinterpret_cast<std::uint64_t>(memory.data()) : 0;
  const RemoteWindow remote{address, registration.key(), memory.size()};
  return std::unique_ptr<Window>(std::make_unique<FabricWindow>(*this, std::move(registration), remote));
}

Result<std::shared_ptr<Landing>> FabricTransport::open_landing(std::span<std::byte> memory,
                                                               std::shared_ptr<const void> owner) {
  if (memory.empty()) return Error{Errc::invalid, "a landing of no bytes"};
  WEFT_TRY(Registration registration, Registration::make(endpoints_->domain(), memory, FI_READ));
  return std::shared_ptr<Landing>(std::make_shared<FabricLanding>(memory, std::move(owner), std::move(registration)));
}

Result<std::unique_ptr<PendingRead>> FabricTransport::read(PeerId peer, const RemoteWindow& window,
                                                           std::uint64_t offset, std::shared_ptr<Landing> landing,
                                                           std::size_t at, std::size_t length) {
  WEFT_CHECK(check_read(window, offset, *landing, at, length));
  auto operation = std::make_shared<ReadOperation>();
  auto outcome = operation->outcome;
  operation->peer = peer;
  operation->use = LandingUse(std::static_pointer_cast<CountedLanding>(std::move(landing)));
  operation->at = at;
  operation->length = length;
  operation->address = window.address + offset;
  operation->key = window.key;
  {
    const std::lock_guard lock(mutex_);
    const auto found = peers_.find(peer);
    if (found == peers_.end()) return no_peer(peer);
    submit(found->second, std::move(operation));
  }
  return std::unique_ptr<PendingRead>(std::make_unique<AwaitedRead>(std::move(outcome)));
}

}  // namespace weft::net
