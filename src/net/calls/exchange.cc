#include "net/calls/exchange.h"

#include <fmt/core.h>

#include <atomic>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "net/calls/incoming.h"
#include "net/calls/outgoing.h"
#include "net/transport/provider.h"

namespace weft {

struct Exchange::Impl {
  ~Impl();
  Status start(const ExchangeOptions& options, const net::MakeTransport& make);
  void receive(std::span<const std::byte> message);

  std::atomic<bool> open{false};  // before, and after, nothing is heard
  std::atomic<std::uint64_t> refused{0};
  std::optional<net::Outgoing> outgoing;
  std::optional<net::Incoming> incoming;
  std::shared_ptr<net::LandingPool> landings;
  std::unique_ptr<Transport> transport;  // ends first: its thread calls receive()
};

Status Exchange::Impl::start(const ExchangeOptions& options, const net::MakeTransport& make) {
  WEFT_TRY(const net::Secret key, net::read_cluster_key(options.key_file));
  WEFT_TRY(transport, make([this](std::span<const std::byte> message) { receive(message); }));
  const net::Identity identity{key, options.node, transport->address()};
  landings = std::make_shared<net::LandingPool>(*transport);
  outgoing.emplace(*transport, identity, landings);
  incoming.emplace(*transport, identity, options.server, options.threads);
  open.store(true, std::memory_order_release);
  return {};
}

Exchange::Impl::~Impl() {
  if (!open.exchange(false)) return;
  incoming->close();
  outgoing->close();
  landings->close();
}

void Exchange::Impl::receive(std::span<const std::byte> message) {
  if (!open.load(std::memory_order_acquire)) return;
  const auto frame = net::parse_frame(message);
  if (!frame.ok() || (!outgoing->receive(*frame) && !incoming->receive(*frame))) ++refused;
}

Exchange::Exchange(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Exchange::~Exchange() = default;

const std::string& Exchange::provider() const {
  return impl_->transport->provider();
}

bool Exchange::is_hardware() const {
  return net::is_hardware(provider());
}

const EndpointAddress& Exchange::address() const {
  return impl_->transport->address();
}

Result<Answer> Exchange::call(const PeerAddress& peer, std::span<const std::byte> request, Deadline deadline) {
  return impl_->outgoing->call(peer, request, deadline);
}

Result<LandingBuffer> Exchange::landing(Deadline deadline) {
  return impl_->landings->take(deadline);
}

Result<std::shared_ptr<Landing>> Exchange::register_landing(std::span<std::byte> memory,
                                                            std::shared_ptr<const void> owner) {
  return impl_->transport->open_landing(memory, std::move(owner));
}

std::uint64_t Exchange::pinned_bytes() const {
  return impl_->transport->pinned_bytes();
}

ExchangeFigures Exchange::figures() const {
  ExchangeFigures out;
  out.provider = provider();
  const auto passed_over = impl_->transport->passed_over();
  out.passed_over.assign(passed_over.begin(), passed_over.end());
  out.refused = impl_->refused;
  out.pinned_bytes = pinned_bytes();
  out.buffers_aside = impl_->landings->aside();
  out.transport = impl_->transport->counters();
  impl_->outgoing->add_to(out);
  impl_->incoming->add_to(out);
  return out;
}

Result<std::unique_ptr<Exchange>> Exchange::open(const ExchangeOptions& options) {
  return net::open_exchange(options, [&](Transport::Receiver receiver) {
    return open_fabric_transport({options.provider, options.host, options.port, std::move(receiver)});
  });
}

namespace net {

Result<std::unique_ptr<Exchange>> open_exchange(const ExchangeOptions& options, const MakeTransport& make) {
  if (options.node.empty() || options.node.size() > limits::kNodeIdMax)
    return Error{Errc::invalid, "a node's id: expected 1 to 64 bytes"};
  auto made = std::make_unique<Exchange::Impl>();
  WEFT_CHECK(made->start(options, make));
  return std::make_unique<Exchange>(std::move(made));
}

}  // namespace net
}  // namespace weft
