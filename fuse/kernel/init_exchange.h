// Intercepts the traffic between the kernel and libfuse. FUSE_INIT comes once per mount, so the supervisor reads and
// keeps it, and each server gets it as its first request. The reply of the first server goes to the kernel, with
// passthrough negotiated (libfuse has an API for that since 3.17). Replies of later servers are dropped; instead the
// kernel is asked to resend unanswered requests. Any thread.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fuse/kernel/passthrough.h"
#include "fuse/kernel/protocol.h"
#include "fuse/kernel/request_log.h"
#include "os/bell.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::size_t kInitBytesMax = 256;

// In shared memory.
struct InitWords {
  std::uint32_t stack_depth;  // stack depth to request for passthrough; 0: passthrough is not wanted
  std::uint32_t id_maps;      // 1: let bind mounts have an id mapping; only if the kernel checks modes
  std::uint32_t length;
  std::byte request[kInitBytesMax];
  kernel::InitOut reply;                // the reply that the kernel received
  std::atomic<std::uint32_t> answered;  // 1: the kernel has received it
};

// Reads FUSE_INIT from a freshly mounted device. Errc::unsupported: the kernel sent another request, which fails with
// EIO.
Status keep_init(int device, InitWords& words);
// True if the kernel resends the requests that a dead server left unanswered (Linux 6.9). Without that, no server can
// follow another.
bool can_resend(const InitWords& words);

// True if the kernel agreed that files open with direct I/O can be mapped like other files (Linux 6.6).
bool maps_direct_files(const InitWords& words);

// True if the kernel opens directories itself once a server answers ENOSYS (Linux 5.1).
bool opens_directories(const InitWords& words);

class InitExchange {
 public:
  // All outlive this.
  InitExchange(InitWords& words, Passthrough& passthrough, RequestLog& log);

  // Like read(2) and writev(2) on the device. read() waits without a pending destructor: libfuse cancels threads there.
  ssize_t read(int device, void* buffer, std::size_t size);
  ssize_t write(int device, std::span<const iovec> parts);

  // Rings permanently when the kernel has the reply to FUSE_INIT, so that the mount answers requests. A server must not
  // find out by a request of its own, which could wait for ever: if automount mounts, the walk to the mount point waits
  // for automount, and automount waits for the server.
  const Bell& answered() const { return answered_; }

 private:
  bool is_init_reply(std::span<const iovec> parts) const;
  ssize_t answer_init(int device, std::span<const iovec> parts);
  void compare_with_first(const kernel::InitOut& reply) const;

  InitWords& words_;
  Passthrough& passthrough_;
  RequestLog& log_;
  std::uint64_t init_unique_ = 0;
  std::atomic<bool> given_{false};
  std::atomic<bool> over_{false};
  const Bell answered_;
};

// The number of the request that this thread answers. Unique for the mount, and the same if the kernel resends the
// request after a restart of the server.
std::uint64_t current_request();

// The kernel's poll handle of the FUSE_POLL that this thread answers; 0 if the kernel asks for no notification. It
// is constant while the file is open; libfuse does not expose it.
std::uint64_t current_poll_handle();
// Makes the processes that poll(2) this file ask again. Any thread.
Status notify_poll(int device, std::uint64_t poll_handle);

}  // namespace weft
