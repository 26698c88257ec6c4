// The libfuse session of one server on the device of a mount.
#pragma once

#include <memory>

#include "fuse/state/kernel_cache.h"
#include "fuse/state/server.h"
#include "weft/result.h"

namespace weft {

class Session {
 public:
  // Serves server.device, and closes it when destroyed. `server` outlives this.
  explicit Session(Server& server) : server_(server) {}

  Status make();
  // Blocks until the mount is gone, or until stop() was called and a signal interrupts this thread.
  Status loop();
  // The cache must not outlive the session.
  std::unique_ptr<KernelCache> kernel_cache() { return std::make_unique<SessionCache>(session_.get()); }
  void stop() { fuse_session_exit(session_.get()); }

 private:
  struct Destroy {
    void operator()(fuse_session* session) const { fuse_session_destroy(session); }
  };

  Server& server_;
  std::unique_ptr<fuse_session, Destroy> session_;
};

}  // namespace weft
