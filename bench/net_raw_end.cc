#include "net_raw_end.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTurnMs = 100;
constexpr int kConnectingMs = 1;  // the event queue has to be polled
constexpr std::chrono::seconds kPatience{10};

}  // namespace

Result<std::unique_ptr<RawEnd>> RawEnd::open(net::InfoPtr info) {
  auto made = std::make_unique<RawEnd>();
  WEFT_TRY(made->domain_, net::Domain::open(std::move(info)));
  WEFT_TRY(made->events_, net::open_events(made->domain_->fabric.get(), FI_WAIT_NONE));
  return made;
}

Result<std::unique_ptr<RawEnd>> RawEnd::listening(const std::string& provider, const std::string& host) {
  WEFT_TRY(net::InfoPtr info, net::find_provider(provider, FI_EP_MSG, host, 0));
  WEFT_TRY(auto made, open(std::move(info)));
  WEFT_TRY(made->listener_, net::Listener::open(*made->domain_->info, [] {}));
  return made;
}

Result<std::unique_ptr<RawEnd>> RawEnd::connected(const std::string& provider, const std::string& host,
                                                  std::span<const std::byte> address) {
  WEFT_TRY(net::InfoPtr info, net::find_provider(provider, FI_EP_MSG, host, 0));
  std::free(info->dest_addr);
  info->dest_addr = std::malloc(address.size());  // freed by fi_freeinfo()
  if (info->dest_addr == nullptr) return Error{Errc::internal, "no memory"};
  info->dest_addrlen = address.size();
  std::memcpy(info->dest_addr, address.data(), address.size());
  WEFT_TRY(auto made, open(std::move(info)));
  WEFT_TRY(fid_ep* const endpoint, made->add(*made->domain_->info));
  if (const int failed = fi_connect(endpoint, address.data(), nullptr, 0); failed != 0)
    return net::fabric_error(failed, "connecting");
  WEFT_CHECK(made->await_connection());
  return made;
}

Result<fid_ep*> RawEnd::add(fi_info& info) {
  WEFT_TRY(auto endpoint, net::make_fid<fid_ep>("an endpoint", [&](fid_ep** out) {
             return fi_endpoint(domain_->domain.get(), &info, out, nullptr);
           }));
  if (const int failed = fi_ep_bind(endpoint.get(), &events_->fid, 0); failed != 0)
    return net::fabric_error(failed, "binding the queue of events");
  if (const int failed = fi_ep_bind(endpoint.get(), &domain_->queue->fid, FI_TRANSMIT | FI_RECV); failed != 0)
    return net::fabric_error(failed, "binding the queue of completions");
  if (const int failed = fi_enable(endpoint.get()); failed != 0) return net::fabric_error(failed, "enabling it");
  endpoints_.push_back(std::move(endpoint));
  return endpoints_.back().get();
}

Status RawEnd::await_connection() {
  for (const auto end = Clock::now() + kPatience; Clock::now() < end;) {
    fi_cq_data_entry none{};
    fi_cq_sread(domain_->queue.get(), &none, 1, nullptr, kConnectingMs);  // drives progress
    net::Event event;
    if (!net::read_event(events_.get(), 0, event)) continue;
    if (event.kind == FI_CONNECTED) return {};
    return net::fabric_error(event.failure, "connecting");
  }
  return Error{Errc::timed_out, "nobody has accepted the connection"};
}

Status RawEnd::serve_a_while() {
  for (const net::InfoPtr& caller : listener_->take()) {
    WEFT_TRY(fid_ep* const endpoint, add(*caller));
    if (const int failed = fi_accept(endpoint, nullptr, 0); failed != 0) return net::fabric_error(failed, "accepting");
    ++new_;
  }
  fi_cq_data_entry none{};
  fi_cq_sread(domain_->queue.get(), &none, 1, nullptr, new_ > 0 ? kConnectingMs : kTurnMs);
  for (net::Event event; net::read_event(events_.get(), 0, event); event = {})
    if (event.kind == FI_CONNECTED) --new_;
  return {};
}

}  // namespace weft::bench
