#include "net/transport/listener.h"

#include <rdma/fi_errno.h>

#include <utility>

#include "base/limits.h"
#include "net/transport/event.h"

namespace weft::net {
namespace {

constexpr int kListenerSleepMs = 1000;  // bounds the cost of a lost wake-up

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(const fi_info& info, std::function<void()> called) {
  auto made = std::make_unique<Listener>(std::move(called));
  WEFT_CHECK(made->start(info));
  return made;
}

Status Listener::start(const fi_info& info) {
  WEFT_TRY(fabric_, make_fid<fid_fabric>("opening a fabric to listen on",
                                         [&](fid_fabric** out) { return fi_fabric(info.fabric_attr, out, nullptr); }));
  WEFT_TRY(events_, open_events(fabric_.get(), FI_WAIT_FD));
  WEFT_TRY(endpoint_, make_fid<fid_pep>("an endpoint that listens", [&](fid_pep** out) {
             return fi_passive_ep(fabric_.get(), const_cast<fi_info*>(&info), out, nullptr);
           }));
  if (const int failed = fi_pep_bind(endpoint_.get(), &events_->fid, 0); failed != 0)
    return fabric_error(failed, "binding the queue of callers");
  if (const int failed = fi_listen(endpoint_.get()); failed != 0) return fabric_error(failed, "listening");
  WEFT_TRY(address_, address_of(endpoint_->fid));
  thread_ = std::thread([this] { run(); });
  return {};
}

Listener::~Listener() {
  ending_ = true;
  if (thread_.joinable()) {
    wake_events(events_.get());
    thread_.join();
  }
  for (const InfoPtr& caller : take()) reject(*caller);
}

void Listener::run() {
  while (!ending_) {
    Event event;
    if (!read_event(events_.get(), kListenerSleepMs, event)) continue;
    if (event.kind == FI_CONNREQ) receive(std::move(event.info));
  }
}

void Listener::receive(InfoPtr caller) {
  if (!caller) return;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= limits::kPeerConnectionsHalfOpenMax) return reject(*caller);
    waiting_.push_back(std::move(caller));
  }
  called_();
}

std::vector<InfoPtr> Listener::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(waiting_, {});
}

void Listener::reject(const fi_info& caller) {
  fi_reject(endpoint_.get(), caller.handle, nullptr, 0);
}

}  // namespace weft::net
