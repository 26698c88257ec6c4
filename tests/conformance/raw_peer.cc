#include "raw_peer.h"

#include <doctest/doctest.h>
#include <netinet/in.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "net/transport/provider.h"
#include "testing.h"

namespace weft::conformance {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{10};  // how long a broken transport makes a test wait

}  // namespace

RawPeer::RawPeer(const std::string& provider, const std::string& host, const Transport& victim) {
  auto info = testing::must(net::find_provider(provider, FI_EP_MSG, host, 0));
  info->caps = FI_MSG | FI_RMA;
  info->tx_attr->caps = info->rx_attr->caps = 0;
  info->dest_addr = std::malloc(victim.address().size());  // freed by fi_freeinfo()
  info->dest_addrlen = victim.address().size();
  std::memcpy(info->dest_addr, victim.address().data(), victim.address().size());
  domain_ = testing::must(net::Domain::open(std::move(info)));
  events_ = testing::must(net::open_events(domain_->fabric.get(), FI_WAIT_NONE));
  endpoint_ = testing::must(net::make_fid<fid_ep>("an endpoint", [this](fid_ep** out) {
    return fi_endpoint(domain_->domain.get(), domain_->info.get(), out, nullptr);
  }));
  REQUIRE(fi_ep_bind(endpoint_.get(), &events_->fid, 0) == 0);
  REQUIRE(fi_ep_bind(endpoint_.get(), &domain_->queue->fid, FI_TRANSMIT | FI_RECV) == 0);
  REQUIRE(fi_enable(endpoint_.get()) == 0);
  REQUIRE(fi_connect(endpoint_.get(), victim.address().data(), nullptr, 0) == 0);
  net::Event event;
  for (const auto end = Clock::now() + kPatience; event.kind != FI_CONNECTED && Clock::now() < end;) {
    fi_cq_data_entry none{};
    fi_cq_read(domain_->queue.get(), &none, 1);  // drives progress
    if (!net::read_event(events_.get(), 0, event)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  REQUIRE(event.kind == FI_CONNECTED);
}

bool RawPeer::write(const RemoteWindow& window, std::span<std::byte> bytes) {
  const auto registration = testing::must(net::Registration::make(*domain_, bytes, FI_SEND | FI_RECV | FI_WRITE));
  fi_context2 context{};
  // With FI_DELIVERY_COMPLETE: TCP providers otherwise report completion once the bytes are in a socket.
  const iovec from{bytes.data(), bytes.size()};
  const fi_rma_iov to{window.address, bytes.size(), window.key};
  void* descriptor = registration.descriptor();
  const fi_msg_rma message{&from, &descriptor, 1, FI_ADDR_UNSPEC, &to, 1, &context, 0};
  REQUIRE(fi_writemsg(endpoint_.get(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE) == 0);
  return completes();
}

bool RawPeer::completes() {
  for (const auto end = Clock::now() + kPatience; Clock::now() < end;) {
    fi_cq_data_entry entry{};
    const ssize_t count = fi_cq_read(domain_->queue.get(), &entry, 1);
    if (count == 1) return true;
    if (count == -FI_EAVAIL) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  FAIL("nothing came of it");
  return false;
}

}  // namespace weft::conformance
