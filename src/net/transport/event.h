// Connection events of libfabric.
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>

#include "net/transport/fabric.h"
#include "net/transport/provider.h"

namespace weft::net {

struct Event {
  std::uint32_t kind = 0;         // FI_CONNREQ, FI_CONNECTED, FI_SHUTDOWN
  const fid* endpoint = nullptr;  // that the event is about
  InfoPtr info;                   // of FI_CONNREQ: makes the endpoint that accepts the caller
  std::uint32_t number = 0;       // of FI_CONNECTED: the ConnectionId that the accepting end sent
  int failure = 0;                // libfabric's error number if the connection failed; `kind` is then FI_SHUTDOWN
};

// `wait`: FI_WAIT_FD, or FI_WAIT_NONE for a queue that is only polled.
Result<FidPtr<fid_eq>> open_events(fid_fabric* fabric, fi_wait_obj wait);
// Reads one event, and waits for it `patience_ms` at most; 0 polls. False if there was none.
bool read_event(fid_eq* queue, int patience_ms, Event& event);
// Wakes a thread that waits in read_event.
void wake_events(fid_eq* queue);

}  // namespace weft::net
