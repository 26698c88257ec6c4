// What libfabric tells of connections.
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>

#include "net/transport/fabric.h"
#include "net/transport/provider.h"

namespace weft::net {

struct Event {
  std::uint32_t kind = 0;         // FI_CONNREQ, FI_CONNECTED, FI_SHUTDOWN
  const fid* endpoint = nullptr;  // that it is about
  InfoPtr info;                   // of FI_CONNREQ: what an endpoint is made of that accepts the caller
  std::uint32_t number = 0;       // of FI_CONNECTED: what the other end accepted with
  int failure = 0;                // libfabric's number: the connection failed, and `kind` is FI_SHUTDOWN
};

// `wait`: FI_WAIT_FD, or FI_WAIT_NONE for one that is only looked at.
Result<FidPtr<fid_eq>> open_events(fid_fabric* fabric, fi_wait_obj wait);
// Waits so long, not at all for 0. False: there was none.
bool read_event(fid_eq* queue, int patience_ms, Event& event);
// Wakes a thread that waits in read_event.
void wake_events(fid_eq* queue);

}  // namespace weft::net
