#include "net/calls/exchange.h"

#include <fmt/core.h>

#include <atomic>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "net/calls/incoming.h"
#include "net/calls/outgoing.h"

namespace weft {

class Exchange::Impl {
 public:
  explicit Impl(const ExchangeOptions& options) : server_(options.server), threads_(options.threads) {}
  ~Impl();
  Status start(const net::Secret& cluster_key, const std::string& node, const net::MakeTransport& make);
  ExchangeFigures figures() const;
  Transport& transport() const { return *transport_; }
  net::Outgoing& outgoing() { return *outgoing_; }
  net::LandingPool& landings() const { return *landings_; }

 private:
  void receive(std::span<const std::byte> message);

  PeerServer* const server_;
  const unsigned threads_;
  std::atomic<bool> open_{false};  // before, and after, nothing is heard
  std::atomic<std::uint64_t> refused_{0};
  std::optional<net::Outgoing> outgoing_;
  std::optional<net::Incoming> incoming_;
  std::shared_ptr<net::LandingPool> landings_;
  std::unique_ptr<Transport> transport_;  // ends first: its thread calls receive()
};

Status Exchange::Impl::start(const net::Secret& cluster_key, const std::string& node, const net::MakeTransport& make) {
  WEFT_TRY(transport_, make([this](std::span<const std::byte> message) { receive(message); }));
  const net::Identity identity{cluster_key, node, transport_->address()};
  landings_ = std::make_shared<net::LandingPool>(*transport_);
  outgoing_.emplace(*transport_, identity, landings_);
  incoming_.emplace(*transport_, identity, server_, threads_);
  open_.store(true, std::memory_order_release);
  return {};
}

Exchange::Impl::~Impl() {
  if (!open_.exchange(false)) return;
  incoming_->close();
  outgoing_->close();
  landings_->close();
}

void Exchange::Impl::receive(std::span<const std::byte> message) {
  if (!open_.load(std::memory_order_acquire)) return;
  const auto frame = net::parse_frame(message);
  if (!frame.ok() || (!outgoing_->receive(*frame) && !incoming_->receive(*frame))) ++refused_;
}

ExchangeFigures Exchange::Impl::figures() const {
  ExchangeFigures out;
  out.provider = transport_->provider();
  out.refused = refused_;
  out.buffers_aside = landings_->aside();
  out.transport = transport_->counters();
  outgoing_->add_to(out);
  incoming_->add_to(out);
  return out;
}

Exchange::Exchange(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Exchange::~Exchange() = default;

const std::string& Exchange::provider() const {
  return impl_->transport().provider();
}

const EndpointAddress& Exchange::address() const {
  return impl_->transport().address();
}

Result<Answer> Exchange::call(const PeerAddress& peer, std::span<const std::byte> request, Deadline deadline) {
  return impl_->outgoing().call(peer, request, deadline);
}

Result<LandingBuffer> Exchange::landing(Deadline deadline) {
  return impl_->landings().take(deadline);
}

Result<std::shared_ptr<Landing>> Exchange::register_landing(std::span<std::byte> memory,
                                                            std::shared_ptr<const void> owner) {
  return impl_->transport().open_landing(memory, std::move(owner));
}

ExchangeFigures Exchange::figures() const {
  return impl_->figures();
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
  WEFT_TRY(const Secret key, read_cluster_key(options.key_file));
  auto made = std::make_unique<Exchange::Impl>(options);
  WEFT_CHECK(made->start(key, options.node, make));
  return std::make_unique<Exchange>(std::move(made));
}

}  // namespace net
}  // namespace weft
