// What goes between kernel and libfuse, as it goes by. FUSE_INIT comes once in the life of a mount, so its supervisor
// reads and keeps it, and each server is given it as its first request: the answer of the first goes to the kernel,
// with passthrough agreed on (libfuse has an API for that from 3.17 on); later ones are swallowed, and the kernel is
// asked to send again what was under way. Any thread.
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

// Lies in shared memory.
struct InitWords {
  std::uint32_t stack_depth;  // that passthrough is asked for with; 0: not wanted
  std::uint32_t length;
  std::byte request[kInitBytesMax];
  kernel::InitOut reply;                // what the kernel was told
  std::atomic<std::uint32_t> answered;  // 1: it was
};

// Reads FUSE_INIT from a device that was just mounted.
Status keep_init(int device, InitWords& words);
// Does the kernel send again what a dead server left unanswered (Linux 6.9 and newer)? Else no server can follow
// another.
bool can_resend(const InitWords& words);

// Can what is open direct be mapped as well as other files? So it was agreed on with the kernel (Linux 6.6 and newer).
bool maps_direct_files(const InitWords& words);

// Does the kernel open directories by itself once that is not implemented (Linux 5.1 and newer)?
bool opens_directories(const InitWords& words);

class InitExchange {
 public:
  // All outlive this.
  InitExchange(InitWords& words, Passthrough& passthrough, RequestLog& log);

  // As read(2) and writev(2) of the device. No destructor is pending where read() waits: libfuse cancels threads there.
  ssize_t read(int device, void* buffer, std::size_t size);
  ssize_t write(int device, std::span<const iovec> parts);

  // Rings for good when the kernel has the answer to FUSE_INIT, so that the mount answers requests. A server that would
  // find out by a request of its own could wait for ever: if automount mounts, the walk to the mount point waits for
  // automount, and automount waits for the server.
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

// The number of the request that this thread is answering: unique for the mount, the same when the kernel sends the
// request again after a restart of the server.
std::uint64_t current_request();

// Of the FUSE_POLL that this thread is answering: what the kernel calls the file by that it wants to be told of, which
// stays the same while the file is open; 0 if it does not. libfuse keeps it to itself.
std::uint64_t current_poll_handle();
// Whoever waits for this file by poll(2) asks again. Any thread.
Status notify_poll(int device, std::uint64_t poll_handle);

}  // namespace weft
