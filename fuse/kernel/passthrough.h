// FUSE passthrough without libfuse's API, which exists since 3.17: the kernel itself reads a backing file of ours. The
// feature is negotiated in FUSE_INIT (init_exchange.h). Backing files are then registered by ioctl. Any thread.
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
  void agree() { agreed_.store(true, std::memory_order_release); }  // the kernel agreed, in FUSE_INIT

  // If agreed, registers `file`, one of the store's, as a test, and records the reason if that fails.
  void probe(int device, const Result<Fd>& file);
  bool active() const { return active_.load(std::memory_order_acquire); }
  std::string reason() const;  // why passthrough is not active

  // Returns a backing id for `fd`, valid until close(). An inode has one id at a time.
  static Result<std::int32_t> open(int device, int fd);
  static void close(int device, std::int32_t backing_id);

 private:
  std::atomic<bool> agreed_{false};
  std::atomic<bool> active_{false};
  mutable std::mutex mutex_;
  std::string reason_ = "the kernel has not answered yet";  // guarded by mutex_
};

}  // namespace weft
