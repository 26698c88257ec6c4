#include "fuse/kernel/passthrough.h"

#include <sys/ioctl.h>

#include <cerrno>

#include "fuse/kernel/protocol.h"
#include "os/sys.h"

namespace weft {

void Passthrough::refuse(std::string reason) {
  active_.store(false, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  reason_ = std::move(reason);
}

std::string Passthrough::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

void Passthrough::probe(int device, const Result<Fd>& file) {
  if (!agreed_.load(std::memory_order_acquire)) return;
  if (!file.ok()) return refuse("no file to try it with: " + file.error().message);
  const auto backing = open(device, file->get());
  if (!backing.ok()) return refuse(backing.error().message);
  close(device, *backing);
  active_.store(true, std::memory_order_release);
}

Result<std::int32_t> Passthrough::open(int device, int fd) {
  kernel::BackingMap map{fd, 0, 0};
  const int id = ::ioctl(device, kernel::kBackingOpen, &map);
  if (id > 0) return id;
  Error error = sys_error(errno, "registering a backing file");
  if (errno == EPERM) error.message += " (it needs CAP_SYS_ADMIN)";
  if (errno == ELOOP) error.message += " (the file lies on a stacked file system)";
  return error;
}

void Passthrough::close(int device, std::int32_t backing_id) {
  ::ioctl(device, kernel::kBackingClose, &backing_id);
}

}  // namespace weft
