#include "net/calls/exchange.h"

#include <fmt/core.h>

#include <atomic>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "net/calls/incoming.h"
#include "net/calls/outgoing.h"

namespace weft::net {
namespace {

class JoinedExchange final : public Exchange {
 public:
  explicit JoinedExchange(const ExchangeOptions& options) : server_(options.server), threads_(options.threads) {}
  Status start(const Secret& cluster_key, const std::string& node, const MakeTransport& make);
  ~JoinedExchange() override;

  const std::string& provider() const override { return transport_->provider(); }
  const EndpointAddress& address() const override { return transport_->address(); }
  Result<Answer> call(const PeerAddress& peer, std::span<const std::byte> request, Deadline deadline) override {
    return outgoing_->call(peer, request, deadline);
  }
  Result<LandingBuffer> landing(Deadline deadline) override { return landings_->take(deadline); }
  Result<std::shared_ptr<Landing>> register_landing(std::span<std::byte> memory,
                                                    std::shared_ptr<const void> owner) override {
    return transport_->open_landing(memory, std::move(owner));
  }
  ExchangeFigures figures() const override;

 private:
  void receive(std::span<const std::byte> message);

  PeerServer* const server_;
  const unsigned threads_;
  std::atomic<bool> open_{false};  // before, and after, nothing is heard
  std::atomic<std::uint64_t> refused_{0};
  std::optional<Outgoing> outgoing_;
  std::optional<Incoming> incoming_;
  std::shared_ptr<LandingPool> landings_;
  std::unique_ptr<Transport> transport_;  // ends first: its thread calls receive()
};

Status JoinedExchange::start(const Secret& cluster_key, const std::string& node, const MakeTransport& make) {
  WEFT_TRY(transport_, make([this](std::span<const std::byte> message) { receive(message); }));
  const Identity identity{cluster_key, node, transport_->address()};
  landings_ = std::make_shared<LandingPool>(*transport_);
  outgoing_.emplace(*transport_, identity, landings_);
  incoming_.emplace(*transport_, identity, server_, threads_);
  open_.store(true, std::memory_order_release);
  return {};
}

JoinedExchange::~JoinedExchange() {
  if (!open_.exchange(false)) return;
  incoming_->close();
  outgoing_->close();
  landings_->close();
}

void JoinedExchange::receive(std::span<const std::byte> message) {
  if (!open_.load(std::memory_order_acquire)) return;
  const auto frame = parse_frame(message);
  if (!frame.ok() || (!outgoing_->receive(*frame) && !incoming_->receive(*frame))) ++refused_;
}

ExchangeFigures JoinedExchange::figures() const {
  ExchangeFigures out;
  out.provider = provider();
  out.refused = refused_;
  out.buffers_aside = landings_->aside();
  out.transport = transport_->counters();
  outgoing_->add_to(out);
  incoming_->add_to(out);
  return out;
}

}  // namespace

Result<std::unique_ptr<Exchange>> open_exchange(const ExchangeOptions& options, const MakeTransport& make) {
  if (options.node.empty() || options.node.size() > limits::kNodeIdMax)
    return Error{Errc::invalid, "a node's id: expected 1 to 64 bytes"};
  WEFT_TRY(const Secret key, read_cluster_key(options.key_file));
  auto made = std::make_unique<JoinedExchange>(options);
  WEFT_CHECK(made->start(key, options.node, make));
  return std::unique_ptr<Exchange>(std::move(made));
}

}  // namespace weft::net

namespace weft {

Result<std::unique_ptr<Exchange>> Exchange::open(const ExchangeOptions& options) {
  return net::open_exchange(options, [&](Transport::Receiver receiver) {
    return open_fabric_transport({options.provider, options.host, options.port, std::move(receiver)});
  });
}

}  // namespace weft
