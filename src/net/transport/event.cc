#include "net/transport/event.h"

#include <rdma/fi_errno.h>

#include <array>
#include <cstddef>
#include <cstring>

namespace weft::net {

Result<FidPtr<fid_eq>> open_events(fid_fabric* fabric, fi_wait_obj wait) {
  fi_eq_attr attributes{};
  attributes.wait_obj = wait;
  attributes.flags = FI_WRITE;
  return make_fid<fid_eq>("a queue of connections",
                          [&](fid_eq** out) { return fi_eq_open(fabric, &attributes, out, nullptr); });
}

bool read_event(fid_eq* queue, int patience_ms, Event& event) {
  alignas(fi_eq_cm_entry) std::array<std::byte, 512> room{};  // includes data of the other end
  const ssize_t length = patience_ms > 0 ? fi_eq_sread(queue, &event.kind, room.data(), room.size(), patience_ms, 0)
                                         : fi_eq_read(queue, &event.kind, room.data(), room.size(), 0);
  if (length == -FI_EAVAIL) {
    fi_eq_err_entry failed{};
    if (fi_eq_readerr(queue, &failed, 0) < 0) return false;
    event.kind = FI_SHUTDOWN;
    event.endpoint = failed.fid;
    event.failure = failed.err;
    return true;
  }
  if (length < static_cast<ssize_t>(sizeof(fi_eq_cm_entry))) return false;
  const auto& entry = *reinterpret_cast<const fi_eq_cm_entry*>(room.data());
  event.endpoint = entry.fid;
  if (event.kind == FI_CONNECTED && length >= static_cast<ssize_t>(sizeof entry + sizeof event.number))
    std::memcpy(&event.number, static_cast<const std::uint8_t*>(entry.data), sizeof event.number);
  if (event.kind == FI_CONNREQ) event.info.reset(entry.info);
  return true;
}

void wake_events(fid_eq* queue) {
  const fi_eq_entry nothing{};
  fi_eq_write(queue, FI_NOTIFY, &nothing, sizeof nothing, 0);
}

}  // namespace weft::net
