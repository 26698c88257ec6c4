#include "net/transport/datagrams.h"

#include <fmt/core.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <utility>

namespace weft::net {
namespace {

constexpr std::size_t kDatagramReceives = 64;

class DatagramRoute final : public Route {
 public:
  DatagramRoute(fid_av* peers, fi_addr_t address) : peers_(peers), address_(address) {}
  ~DatagramRoute() override { fi_av_remove(peers_, &address_, 1, 0); }
  fi_addr_t address() const { return address_; }

 private:
  fid_av* const peers_;
  fi_addr_t address_;
};

}  // namespace

Result<std::unique_ptr<Datagrams>> Datagrams::open(InfoPtr info) {
  WEFT_TRY(auto domain, Domain::open(std::move(info)));
  auto made = std::make_unique<Datagrams>(std::move(domain));
  WEFT_CHECK(made->make_endpoint());
  return made;
}

Status Datagrams::make_endpoint() {
  fi_av_attr peers{};
  peers.type = FI_AV_UNSPEC;
  WEFT_TRY(peers_, make_fid<fid_av>("an address vector", [&](fid_av** out) {
             return fi_av_open(domain_->domain.get(), &peers, out, nullptr);
           }));
  WEFT_TRY(endpoint_, make_fid<fid_ep>("an endpoint", [this](fid_ep** out) {
             return fi_endpoint(domain_->domain.get(), domain_->info.get(), out, nullptr);
           }));
  if (const int failed = fi_ep_bind(endpoint(), &domain_->queue->fid, FI_TRANSMIT | FI_RECV); failed != 0)
    return fabric_error(failed, "binding the queue");
  if (const int failed = fi_ep_bind(endpoint(), &peers_->fid, 0); failed != 0)
    return fabric_error(failed, "binding the address vector");
  if (const int failed = fi_enable(endpoint()); failed != 0) return fabric_error(failed, "enabling the endpoint");
  if (domain_->needs(FI_MR_ENDPOINT)) domain_->bound_to = endpoint();
  WEFT_TRY(address_, address_of(endpoint_->fid));
  return {};
}

// A quarter of the endpoint's queue, so that a peer that does not answer leaves space for others.
std::size_t Datagrams::posted_max() const {
  return std::max<std::size_t>(4, domain_->info->tx_attr->size / 4);
}

Status Datagrams::start(Owner& owner) {
  owner.receive_on(0, kDatagramReceives);
  return {};
}

Result<std::shared_ptr<Route>> Datagrams::route(std::span<const std::byte> address) {
  fi_addr_t inserted = FI_ADDR_UNSPEC;
  if (fi_av_insert(peers(), address.data(), 1, &inserted, 0, nullptr) != 1)
    return Error{Errc::invalid, fmt::format("a peer's address: provider {} does not take it", domain_->provider())};
  return std::shared_ptr<Route>(std::make_shared<DatagramRoute>(peers(), inserted));
}

long Datagrams::post(Route& route, Operation& operation) {
  return post_to(endpoint(), static_cast<DatagramRoute&>(route).address(), operation);
}

// Reports each failure as -FI_EAGAIN, so that the caller tries again: the endpoint outlives its receives.
long Datagrams::post_receive(MessageOperation& receive) {
  return post_receive_on(endpoint(), receive) == 0 ? 0 : -FI_EAGAIN;
}

}  // namespace weft::net
