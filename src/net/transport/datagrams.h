// One reliable-datagram endpoint for all peers, for providers without connections (efa, cxi, psm).
#pragma once

#include <memory>

#include "net/transport/endpoints.h"

namespace weft::net {

class Datagrams final : public Endpoints {
 public:
  static Result<std::unique_ptr<Datagrams>> open(InfoPtr info);
  explicit Datagrams(std::unique_ptr<Domain> domain) : domain_(std::move(domain)) {}

  fid_ep* endpoint() const { return endpoint_.get(); }
  fid_av* peers() const { return peers_.get(); }

  Domain& domain() override { return *domain_; }
  const EndpointAddress& address() const override { return address_; }
  std::size_t posted_max() const override;
  Status start(Owner& owner) override;
  void stop() override {}
  void close() override { endpoint_.reset(); }
  Result<std::shared_ptr<Route>> route(std::span<const std::byte> address) override;
  long post(Route& route, Operation& operation) override;
  long post_receive(MessageOperation& receive) override;
  void completed(ConnectionId /*connection*/, bool /*well*/, std::size_t /*received*/) override {}
  void completed_own(const void* /*context*/, bool /*well*/) override {}
  bool poll() override { return false; }

 private:
  Status make_endpoint();

  std::unique_ptr<Domain> domain_;
  FidPtr<fid_av> peers_;
  FidPtr<fid_ep> endpoint_;
  EndpointAddress address_;
};

}  // namespace weft::net
