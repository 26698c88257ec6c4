// FUSE passthrough without libfuse's help (it has an API from 3.17 on): the kernel reads a backing file of ours by
// itself. The feature is agreed on in FUSE_INIT (init_exchange.h); then backing files are registered by ioctl.
// Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "os/sys.h"
#include "weft/result.h"

namespace weft {

class Passthrough {
 public:
  void refuse(std::string reason);
  void agree() { agreed_.store(true, std::memory_order_release); }  // kernel and we, in FUSE_INIT

  // Once agreed on, registers `file`, one of the store, to see that it works, and notes why not.
  void probe(int device, const Result<Fd>& file);
  bool active() const { return active_.load(std::memory_order_acquire); }
  std::string reason() const;  // why it is not active

  // A backing id for `fd`, valid until close(). One inode has one id at a time.
  static Result<std::int32_t> open(int device, int fd);
  static void close(int device, std::int32_t backing_id);

 private:
  std::atomic<bool> agreed_{false};
  std::atomic<bool> active_{false};
  mutable std::mutex mutex_;
  std::string reason_ = "the kernel has not answered yet";  // guarded by mutex_
};

}  // namespace weft
