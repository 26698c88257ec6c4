// FUSE passthrough without libfuse's help (it has an API from 3.17 on): the kernel reads a backing file of ours by
// itself. The feature is agreed on by patching FUSE_INIT as it goes by; then backing files are registered by ioctl.
// Any thread.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "protocol.h"
#include "weft/result.h"

namespace weft {

class Passthrough {
 public:
  // `stack_depth`: how deep the mount is stacked over its backing files: 1, or 2 when they lie on overlayfs (then the
  // mount cannot be a lower layer of an overlay itself).
  void want(std::uint32_t stack_depth) { stack_depth_ = stack_depth; }
  void refuse(std::string reason);

  // What passes between kernel and libfuse. Both are cheap once FUSE_INIT is over.
  void see_request(std::span<const std::byte> request);
  // writev(2) of a reply; the one to FUSE_INIT is changed on the way. As writev: -1 and errno.
  ssize_t send_reply(int device, std::span<const iovec> parts);

  // Did both sides agree? Registers a file once to see that it works, and notes why not.
  void probe(int device);
  bool active() const { return active_.load(std::memory_order_acquire); }
  std::string reason() const;  // why it is not active

  // A backing id for `fd`, valid until close(). One inode has one id at a time.
  static Result<std::int32_t> open(int device, int fd);
  static void close(int device, std::int32_t backing_id);

 private:
  ssize_t send_init_reply(int device, std::span<const iovec> parts);

  std::uint32_t stack_depth_ = 0;  // 0: not wanted
  std::uint64_t init_unique_ = 0;
  bool offered_ = false;
  std::atomic<bool> init_over_{false};
  std::atomic<bool> agreed_{false};
  std::atomic<bool> active_{false};
  mutable std::mutex mutex_;
  std::string reason_ = "the kernel has not answered yet";  // guarded by mutex_
};

}  // namespace weft
