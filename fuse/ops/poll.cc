#include <poll.h>

#include "fuse/kernel/init_exchange.h"
#include "fuse/ops/ops.h"

namespace weft {

Status op_poll(Server& server, fuse_req_t request, fuse_ino_t node, fuse_file_info* file, fuse_pollhandle* handle) {
  if (handle != nullptr) fuse_pollhandle_destroy(handle);  // not needed: current_poll_handle() outlives this server
  constexpr unsigned kReady = POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;
  constexpr unsigned kReadable = POLLIN | POLLRDNORM;
  const bool stream = ino_of(node) == kEventsIno;
  const bool readable = !stream || server.events.readable(file->fh, current_poll_handle());
  fuse_reply_poll(request, !readable ? 0 : stream ? kReadable : kReady);
  return {};
}

}  // namespace weft
