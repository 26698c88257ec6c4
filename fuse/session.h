// The FUSE session of one mount: how it is mounted, its loop, its end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/sys.h"
#include "kernel_cache.h"
#include "server.h"
#include "weft/result.h"

namespace weft {

// The number of the request that this thread is answering: unique for the mount, the same when the kernel sends the
// request again after a restart of the server.
std::uint64_t current_request();

class Session {
 public:
  // `server` outlives this.
  explicit Session(Server& server) : server_(server) {}

  // As root by mount(2), which passthrough needs; else by fusermount3. Tells server.passthrough.
  Status mount();
  // Blocks until the mount is gone or stop() was called and a signal interrupted this thread.
  Status loop();
  // To be used while this lives.
  std::unique_ptr<KernelCache> kernel_cache() { return std::make_unique<SessionCache>(session_.get()); }
  void stop() { fuse_session_exit(session_.get()); }
  // Takes the mount away, also while it is used.
  void unmount();

 private:
  struct Destroy {
    void operator()(fuse_session* session) const { fuse_session_destroy(session); }
  };
  Status make();
  Status serve_device(Fd device);
  Status mount_ourselves();
  Status mount_by_fusermount();

  Server& server_;
  std::unique_ptr<fuse_session, Destroy> session_;
  bool by_fusermount_ = false;
};

}  // namespace weft
