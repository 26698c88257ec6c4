#include "passthrough.h"

#include <sys/ioctl.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/sys.h"

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

void Passthrough::see_request(std::span<const std::byte> request) {
  if (init_over_.load(std::memory_order_acquire) || request.size() < sizeof(kernel::InHeader)) return;
  kernel::InHeader header;
  std::memcpy(&header, request.data(), sizeof header);
  if (header.opcode != kernel::kOpInit) return;
  init_unique_ = header.unique;
  kernel::InitIn init{};
  const auto body = request.subspan(sizeof header);
  std::memcpy(&init, body.data(), std::min(body.size(), sizeof init));
  offered_ = (init.flags & kernel::kInitExt) != 0 && (init.flags2 & kernel::kPassthroughFlag2) != 0;
  if (stack_depth_ != 0 && !offered_) refuse("the kernel does not offer it (Linux 6.9 or newer does)");
}

ssize_t Passthrough::send_reply(int device, std::span<const iovec> parts) {
  if (!init_over_.load(std::memory_order_acquire)) return send_init_reply(device, parts);
  return ::writev(device, parts.data(), static_cast<int>(parts.size()));
}

ssize_t Passthrough::send_init_reply(int device, std::span<const iovec> parts) {
  kernel::OutHeader header{};
  kernel::InitOut init{};
  const bool whole = parts.size() == 2 && parts[0].iov_len == sizeof header && parts[1].iov_len == sizeof init;
  if (whole) std::memcpy(&header, parts[0].iov_base, sizeof header);
  if (!whole || header.unique != init_unique_ || header.error != 0)
    return ::writev(device, parts.data(), static_cast<int>(parts.size()));

  std::memcpy(&init, parts[1].iov_base, sizeof init);
  const bool agree = stack_depth_ != 0 && offered_;
  if (agree) {
    init.flags |= kernel::kInitExt;
    init.flags2 |= kernel::kPassthroughFlag2;
    init.stack_depth_max = stack_depth_;
  }
  // Set before the reply leaves: the next request may be answered by another thread at once.
  agreed_.store(agree, std::memory_order_release);
  init_over_.store(true, std::memory_order_release);
  const std::array patched{parts[0], iovec{&init, sizeof init}};
  return ::writev(device, patched.data(), static_cast<int>(patched.size()));
}

void Passthrough::probe(int device) {
  if (!agreed_.load(std::memory_order_acquire)) return;
  const Fd file(::memfd_create("weft-passthrough-probe", MFD_CLOEXEC));
  if (!file.valid()) return refuse("no file to try it with");
  const auto backing = open(device, file.get());
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
